--: Sequelize's include with limit: a sub-query, literals, a semicolon.
--: verdict: rewrite
--: session: SET search_path = sequelize, public
--: inner: SELECT FROM sequelize."Bookings"
--: reference: SELECT "Booking".*, "Seats"."id" AS "Seats.id" FROM (SELECT "Booking"."id", "Booking"."note", "Booking"."placedAt" FROM sequelize."Bookings" AS "Booking" ORDER BY "Booking"."placedAt" DESC, id DESC LIMIT :limit OFFSET :offset) AS "Booking"
--: reference: LEFT OUTER JOIN sequelize."Seats" AS "Seats" ON "Booking"."id" = "Seats"."bookingId" ORDER BY "Booking"."placedAt" DESC
SELECT "Booking".*, "Seats"."id" AS "Seats.id" FROM (SELECT "Booking"."id", "Booking"."note", "Booking"."placedAt" FROM "Bookings" AS "Booking" ORDER BY "Booking"."placedAt" DESC LIMIT :limit OFFSET :offset) AS "Booking" LEFT OUTER JOIN "Seats" AS "Seats" ON "Booking"."id" = "Seats"."bookingId" ORDER BY "Booking"."placedAt" DESC;
