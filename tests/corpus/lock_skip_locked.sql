--: verdict: pass locking
SELECT id FROM booking ORDER BY id LIMIT :limit FOR UPDATE SKIP LOCKED
