--: The output is called like the column that is cast.
--: verdict: rewrite
SELECT id::text FROM booking ORDER BY id LIMIT :limit
