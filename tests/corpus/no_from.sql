--: verdict: pass no_from
SELECT 1 ORDER BY 1 LIMIT :limit
