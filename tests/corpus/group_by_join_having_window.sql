--: Aggregates under a window function: the page is wrapped around both.
--: verdict: rewrite
SELECT v.city, count(*) AS n, sum(count(*)) OVER () AS total FROM booking b JOIN venue v ON v.id = b.venue_id GROUP BY v.city HAVING count(*) > 1 ORDER BY n DESC, v.city LIMIT :limit
