--: verdict: rewrite
SELECT id FROM kind ORDER BY t DESC NULLS LAST, d, iv LIMIT :limit
