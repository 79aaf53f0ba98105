--: SQLAlchemy's count().
--: verdict: pass no_order
--: params: 7
SELECT count(*) AS count_1 
FROM (SELECT booking.id AS booking_id FROM booking WHERE booking.venue_id = $1::INTEGER) AS anon_1
