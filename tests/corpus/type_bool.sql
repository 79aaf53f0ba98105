--: verdict: rewrite
SELECT id, ok FROM kind ORDER BY ok DESC, m LIMIT :limit
