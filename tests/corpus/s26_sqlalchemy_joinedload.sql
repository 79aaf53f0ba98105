--: SQLAlchemy's joinedload: the page is the level inside.
--: verdict: rewrite
--: params: :limit, :offset
--: inner: SELECT FROM booking
--: reference: SELECT anon_1.booking_id, anon_1.booking_note, seat_1.id AS id_1 FROM (SELECT booking.id AS booking_id, booking.note AS booking_note FROM booking ORDER BY booking.id LIMIT :limit OFFSET :offset) AS anon_1
--: reference: LEFT OUTER JOIN seat AS seat_1 ON anon_1.booking_id = seat_1.booking_id ORDER BY anon_1.booking_id
SELECT anon_1.booking_id, anon_1.booking_note, seat_1.id AS id_1 
FROM (SELECT booking.id AS booking_id, booking.note AS booking_note 
FROM booking ORDER BY booking.id 
 LIMIT $1::INTEGER OFFSET $2::INTEGER) AS anon_1 LEFT OUTER JOIN seat AS seat_1 ON anon_1.booking_id = seat_1.booking_id ORDER BY anon_1.booking_id
