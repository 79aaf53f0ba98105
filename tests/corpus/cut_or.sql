--: The filter's OR keeps its meaning.
--: verdict: rewrite
SELECT id FROM booking WHERE venue_id = 3 OR note IS NULL ORDER BY note DESC NULLS LAST, id LIMIT :limit
