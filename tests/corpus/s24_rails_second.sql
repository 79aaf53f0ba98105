--: Rails' second statement: the rows of those ids.
--: verdict: pass no_limit
--: params: 1, 2, 3
SELECT "bookings"."id" AS t0_r0, "seats"."id" AS t1_r0 FROM "bookings" LEFT OUTER JOIN "seats" ON "seats"."booking_id" = "bookings"."id" WHERE "bookings"."id" IN ($1, $2, $3) ORDER BY "bookings"."placed_at" DESC
