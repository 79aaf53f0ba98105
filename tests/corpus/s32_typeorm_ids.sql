--: TypeORM's take with joins: distinct ids of a derived table, in mixed directions.
--: verdict: rewrite
SELECT DISTINCT "distinctAlias"."Booking_id" AS "ids_Booking_id", "distinctAlias"."Booking_placed_at" FROM (SELECT "Booking"."id" AS "Booking_id", "Booking"."placed_at" AS "Booking_placed_at", "seats"."id" AS "seats_id" FROM "booking" "Booking" LEFT JOIN "seat" "seats" ON "seats"."booking_id"="Booking"."id") "distinctAlias" ORDER BY "distinctAlias"."Booking_placed_at" DESC, "Booking_id" ASC LIMIT :limit OFFSET :offset
