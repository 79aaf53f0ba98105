--: The look-ahead row would be locked too.
--: verdict: pass locking
WITH l AS (SELECT id, note FROM booking FOR UPDATE) SELECT id FROM l ORDER BY note, id LIMIT :limit
