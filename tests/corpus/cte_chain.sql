--: verdict: rewrite
--: params: 7, :limit
WITH a AS (SELECT * FROM booking WHERE venue_id = $1), b AS (SELECT a.id, a.note, s.seat_no FROM a LEFT JOIN seat s ON s.booking_id = a.id) SELECT * FROM b ORDER BY note, seat_no DESC LIMIT $2
