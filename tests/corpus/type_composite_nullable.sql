--: IS NULL does not tell a NULL row from a row of NULLs.
--: verdict: pass composite_key
SELECT id, pn FROM kind ORDER BY pn, id LIMIT :limit
