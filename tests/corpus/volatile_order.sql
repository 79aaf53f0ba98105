--: verdict: pass volatile
SELECT id FROM booking ORDER BY random() LIMIT :limit
