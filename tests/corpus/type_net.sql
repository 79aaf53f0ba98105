--: verdict: rewrite
SELECT id FROM kind ORDER BY net, mac DESC, u LIMIT :limit
