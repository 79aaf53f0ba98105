--: verdict: rewrite
SELECT q.id, q.what FROM (SELECT id, 'b' AS what FROM booking UNION SELECT id, 's' FROM seat) q ORDER BY q.what DESC, q.id LIMIT :limit
