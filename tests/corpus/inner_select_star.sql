--: The outside selects * of the page's level.
--: verdict: rewrite
--: inner: SELECT FROM booking
--: reference: SELECT * FROM (SELECT * FROM booking ORDER BY note, id LIMIT :limit OFFSET :offset) q JOIN venue v ON v.id = q.venue_id ORDER BY q.note, q.id
SELECT * FROM (SELECT * FROM booking ORDER BY note LIMIT :limit OFFSET :offset) q JOIN venue v ON v.id = q.venue_id ORDER BY q.note, q.id
