--: Prisma's older cursor: no LIMIT, since the rows are trimmed in memory.
--: verdict: pass no_limit
--: params: 20, :offset
SELECT "public"."Booking"."id" FROM "public"."Booking", (SELECT "public"."Booking"."placedAt" AS "Booking_placedAt_0" FROM "public"."Booking" WHERE ("public"."Booking"."id") = ($1)) AS "order_cmp" WHERE "public"."Booking"."placedAt" <= "order_cmp"."Booking_placedAt_0" ORDER BY "public"."Booking"."placedAt" DESC OFFSET $2
