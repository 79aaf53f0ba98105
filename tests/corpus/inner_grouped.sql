--: The page's level is grouped.
--: verdict: rewrite
--: inner: SELECT FROM booking GROUP BY note, venue_id
--: reference: SELECT g.note, v.city, g.n FROM (SELECT note, venue_id, count(*) AS n FROM booking GROUP BY note, venue_id ORDER BY note, venue_id LIMIT :limit OFFSET :offset) g JOIN venue v ON v.id = g.venue_id ORDER BY g.note, v.city
SELECT g.note, v.city, g.n FROM (SELECT note, venue_id, count(*) AS n FROM booking GROUP BY note, venue_id ORDER BY note, venue_id LIMIT :limit OFFSET :offset) g JOIN venue v ON v.id = g.venue_id ORDER BY g.note, v.city
