--: No column at all.
--: verdict: rewrite
SELECT FROM booking ORDER BY note, id LIMIT :limit
