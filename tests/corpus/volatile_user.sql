--: verdict: pass volatile
SELECT id FROM booking ORDER BY restless(title), id LIMIT :limit
