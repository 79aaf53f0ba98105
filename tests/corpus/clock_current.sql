--: verdict: pass clock_key
SELECT id FROM booking ORDER BY CURRENT_TIMESTAMP > placed_at, id LIMIT :limit
