--: An aggregate without GROUP BY is one row.
--: verdict: rewrite
SELECT b.id, s.n FROM booking b, LATERAL (SELECT count(*) AS n FROM seat WHERE seat.booking_id = b.id) s ORDER BY s.n DESC LIMIT :limit
