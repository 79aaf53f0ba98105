--: verdict: rewrite
SELECT id, v FROM kind ORDER BY v, vn DESC LIMIT :limit
