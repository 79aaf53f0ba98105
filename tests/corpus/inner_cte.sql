--: The page is a CTE that is read twice.
--: verdict: rewrite
--: params: 7, :limit, :offset
--: inner: SELECT FROM booking WHERE venue_id = 7
--: reference: WITH p AS (SELECT * FROM booking WHERE venue_id = 7 ORDER BY amount DESC, id DESC LIMIT :limit OFFSET :offset) SELECT p.id, (SELECT count(*) FROM p) AS n FROM (SELECT * FROM p) p ORDER BY p.amount DESC
WITH p AS (SELECT * FROM booking WHERE venue_id = $1 ORDER BY amount DESC LIMIT $2 OFFSET $3) SELECT p.id, (SELECT count(*) FROM p) AS n FROM (SELECT * FROM p) p ORDER BY p.amount DESC
