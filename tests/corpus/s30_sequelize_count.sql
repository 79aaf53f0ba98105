--: Sequelize's findAndCountAll.
--: verdict: pass no_order
--: session: SET search_path = sequelize, public
SELECT count(*) AS "count" FROM "Bookings" AS "Booking" WHERE "Booking"."venueId" = 7;
