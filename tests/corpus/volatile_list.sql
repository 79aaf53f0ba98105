--: verdict: pass volatile
SELECT id, random() < 2 AS r FROM booking ORDER BY id LIMIT :limit
