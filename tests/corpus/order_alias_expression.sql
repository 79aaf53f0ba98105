--: verdict: rewrite
SELECT id, upper(title) AS loud, note FROM booking ORDER BY loud DESC, note LIMIT :limit OFFSET :offset
