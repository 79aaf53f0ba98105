--: verdict: rewrite
SELECT id FROM kind ORDER BY by DESC, bits, q, o LIMIT :limit
