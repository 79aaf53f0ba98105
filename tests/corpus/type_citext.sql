--: verdict: rewrite
SELECT id, c FROM kind ORDER BY c, cn DESC LIMIT :limit
