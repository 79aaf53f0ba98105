--: verdict: rewrite
SELECT id, m FROM kind ORDER BY m DESC, mn NULLS FIRST LIMIT :limit
