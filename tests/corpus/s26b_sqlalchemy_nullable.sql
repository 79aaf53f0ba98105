--: joinedload under a nullable order of mixed directions.
--: verdict: rewrite
--: params: :limit, :offset
--: inner: SELECT FROM booking
--: reference: SELECT anon_1.booking_id, seat_1.id AS id_1 FROM (SELECT booking.id AS booking_id, booking.note AS booking_note, booking.placed_at AS p FROM booking ORDER BY booking.note DESC NULLS LAST, booking.placed_at, booking.id LIMIT :limit OFFSET :offset) AS anon_1
--: reference: LEFT OUTER JOIN seat AS seat_1 ON anon_1.booking_id = seat_1.booking_id ORDER BY anon_1.booking_note DESC NULLS LAST, anon_1.p, seat_1.id
SELECT anon_1.booking_id, seat_1.id AS id_1 
FROM (SELECT booking.id AS booking_id, booking.note AS booking_note, booking.placed_at AS p 
FROM booking ORDER BY booking.note DESC NULLS LAST, booking.placed_at 
 LIMIT $1 OFFSET $2) AS anon_1 LEFT OUTER JOIN seat AS seat_1 ON anon_1.booking_id = seat_1.booking_id ORDER BY anon_1.booking_note DESC NULLS LAST, anon_1.p, seat_1.id
