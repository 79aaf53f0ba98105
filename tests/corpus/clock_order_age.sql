--: verdict: pass clock_key
SELECT id FROM booking ORDER BY age(placed_at), id LIMIT :limit
