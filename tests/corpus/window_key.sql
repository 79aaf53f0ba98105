--: verdict: pass window_key
SELECT id, row_number() OVER (ORDER BY placed_at, id) AS n FROM booking ORDER BY n LIMIT :limit
