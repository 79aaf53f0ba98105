--: A window function in a derived table, and an order by something else.
--: verdict: rewrite
SELECT q.id, q.n FROM (SELECT id, note, row_number() OVER (ORDER BY id) AS n FROM booking) q ORDER BY q.note, q.id LIMIT :limit
