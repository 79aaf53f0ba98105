--: verdict: rewrite
--: options: key=id
SELECT id, name FROM animal ORDER BY name LIMIT :limit
