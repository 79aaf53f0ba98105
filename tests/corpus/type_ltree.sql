--: verdict: rewrite
SELECT id FROM kind ORDER BY path, pathn DESC LIMIT :limit
