--: verdict: pass locking
SELECT *, placed_at AS at FROM booking ORDER BY placed_at, id LIMIT :limit FOR UPDATE
