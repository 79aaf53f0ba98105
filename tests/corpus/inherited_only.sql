--: verdict: rewrite
SELECT id, name FROM ONLY animal ORDER BY name LIMIT :limit
