--: verdict: pass locking
SELECT q.id FROM (SELECT id, note FROM booking FOR UPDATE) q ORDER BY q.note, q.id LIMIT :limit
