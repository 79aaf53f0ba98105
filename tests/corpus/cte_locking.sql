--: Rows that a CTE locks would be locked for the look-ahead row too.
--: verdict: pass locking
WITH l AS (SELECT id, note FROM booking FOR UPDATE) SELECT id FROM l ORDER BY note, id LIMIT :limit
