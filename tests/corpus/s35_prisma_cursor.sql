--: Prisma's cursor since 2023 carries its own boundary.
--: verdict: pass already_keyset
--: params: 20, :limit, :offset
SELECT "public"."Booking"."id" FROM "public"."Booking" WHERE "public"."Booking"."id" >= (SELECT "public"."Booking"."id" FROM "public"."Booking" WHERE ("public"."Booking"."id") = ($1)) ORDER BY "public"."Booking"."id" ASC LIMIT $2 OFFSET $3
