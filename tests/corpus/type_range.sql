--: verdict: rewrite
SELECT id FROM kind ORDER BY r DESC, rn LIMIT :limit
