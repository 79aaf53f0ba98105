--: verdict: rewrite
SELECT id, note FROM booking ORDER BY note LIMIT :limit
