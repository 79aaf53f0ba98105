--: verdict: rewrite
SELECT id FROM kind ORDER BY j, jn DESC NULLS LAST LIMIT :limit
