--: verdict: pass clock_key
SELECT id FROM booking ORDER BY now() - placed_at, id LIMIT :limit
