--: verdict: pass window_key
SELECT q.id FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM booking) q ORDER BY q.n LIMIT :limit
