--: verdict: rewrite
--: options: key=y
SELECT x, y FROM heap ORDER BY z DESC, x LIMIT :limit
