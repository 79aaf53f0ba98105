--: verdict: error
SELECT id FROM kind ORDER BY pt, id LIMIT :limit
