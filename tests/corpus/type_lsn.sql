--: verdict: rewrite
SELECT id FROM kind ORDER BY lsn, sm DESC, ch LIMIT :limit
