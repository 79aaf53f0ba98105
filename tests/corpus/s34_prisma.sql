--: Prisma: schema-qualified, OFFSET always there.
--: verdict: rewrite
--: params: 7, :limit, :offset
SELECT "public"."Booking"."id", "public"."Booking"."note" FROM "public"."Booking" WHERE "public"."Booking"."venueId" = $1 ORDER BY "public"."Booking"."placedAt" DESC LIMIT $2 OFFSET $3
