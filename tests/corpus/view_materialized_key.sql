--: verdict: rewrite
--: options: key=id
SELECT id, note FROM stored ORDER BY note LIMIT :limit
