--: verdict: rewrite
SELECT id, n FROM kind ORDER BY n, nn DESC LIMIT :limit
