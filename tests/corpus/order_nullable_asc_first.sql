--: verdict: rewrite
SELECT id, note FROM booking ORDER BY note NULLS FIRST LIMIT :limit OFFSET :offset
