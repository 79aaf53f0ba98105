--: TypeORM's find with take and skip: quoted aliases for every column.
--: verdict: rewrite
SELECT "Booking"."id" AS "Booking_id", "Booking"."note" AS "Booking_note", "Booking"."placedAt" AS "Booking_placedAt" FROM "Booking" "Booking" ORDER BY "Booking_placedAt" DESC LIMIT :limit OFFSET :offset
