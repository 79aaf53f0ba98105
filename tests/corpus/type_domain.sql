--: verdict: rewrite
SELECT id, s FROM kind ORDER BY s, sn DESC, l LIMIT :limit
