--: verdict: pass set_returning
SELECT id FROM booking ORDER BY id, generate_series(1, 2) LIMIT :limit
