--: verdict: rewrite
SELECT a, b, d FROM pair ORDER BY d, c DESC LIMIT :limit OFFSET :offset
