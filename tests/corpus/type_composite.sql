--: verdict: rewrite
SELECT id, p FROM kind ORDER BY p DESC, id LIMIT :limit
