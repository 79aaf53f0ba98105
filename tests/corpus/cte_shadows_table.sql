--: A CTE hides the table of its name.
--: verdict: rewrite
WITH seat AS (SELECT id, note FROM booking) SELECT s.id FROM seat s ORDER BY s.note DESC LIMIT :limit
