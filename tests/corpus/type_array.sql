--: verdict: rewrite
SELECT id FROM kind ORDER BY a, an DESC LIMIT :limit
