--: verdict: rewrite
SELECT id FROM kind ORDER BY f4, f8 DESC, f4n LIMIT :limit
