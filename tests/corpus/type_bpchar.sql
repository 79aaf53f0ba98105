--: verdict: rewrite
SELECT id, b FROM kind ORDER BY b DESC, bn LIMIT :limit
