--: verdict: rewrite
SELECT id FROM kind ORDER BY doc, id LIMIT :limit
