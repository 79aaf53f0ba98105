--: The usual emulation of NULLS LAST.
--: verdict: rewrite
SELECT id, note FROM booking ORDER BY note IS NULL, note, id LIMIT :limit OFFSET :offset
