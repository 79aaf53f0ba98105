--: verdict: rewrite
SELECT id FROM booking WHERE note IS NOT NULL ORDER BY note DESC NULLS LAST LIMIT :limit
