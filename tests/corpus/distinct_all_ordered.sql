--: verdict: rewrite
SELECT DISTINCT note, title FROM booking ORDER BY title DESC, note NULLS FIRST LIMIT :limit
