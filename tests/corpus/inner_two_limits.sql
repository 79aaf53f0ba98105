--: Two levels have a LIMIT.
--: verdict: pass several_limits
SELECT q.id FROM (SELECT id, note FROM booking ORDER BY note, id LIMIT 20) q ORDER BY q.id LIMIT :limit
