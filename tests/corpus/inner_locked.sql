--: verdict: pass locking
SELECT q.id FROM (SELECT id FROM booking ORDER BY id LIMIT :limit FOR UPDATE) q ORDER BY q.id
