--: verdict: error
SELECT id FROM kind ORDER BY x, id LIMIT :limit
