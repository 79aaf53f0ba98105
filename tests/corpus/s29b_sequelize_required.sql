--: Sequelize's required include: an inner join that drops whole pages.
--: verdict: rewrite
--: session: SET search_path = sequelize, public
--: inner: SELECT FROM sequelize."Bookings"
--: reference: SELECT "Booking".*, "Seats"."id" AS "Seats.id" FROM (SELECT "Booking"."id", "Booking"."placedAt" FROM sequelize."Bookings" AS "Booking" ORDER BY "Booking"."placedAt" DESC, id DESC LIMIT :limit OFFSET :offset) AS "Booking"
--: reference: INNER JOIN sequelize."Seats" AS "Seats" ON "Booking"."id" = "Seats"."bookingId" AND "Seats"."seatNo" % 7 = 0 ORDER BY "Booking"."placedAt" DESC
SELECT "Booking".*, "Seats"."id" AS "Seats.id" FROM (SELECT "Booking"."id", "Booking"."placedAt" FROM "Bookings" AS "Booking" ORDER BY "Booking"."placedAt" DESC LIMIT :limit OFFSET :offset) AS "Booking" INNER JOIN "Seats" AS "Seats" ON "Booking"."id" = "Seats"."bookingId" AND "Seats"."seatNo" % 7 = 0 ORDER BY "Booking"."placedAt" DESC;
