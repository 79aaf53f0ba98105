--: Prisma's relation filter: a sub-select in WHERE, a nullable order.
--: verdict: rewrite
--: params: 12, :limit, :offset
SELECT "public"."booking"."id", "public"."booking"."note" FROM "public"."booking" WHERE ("public"."booking"."id") IN (SELECT "t1"."booking_id" FROM "public"."seat" AS "t1" WHERE ("t1"."seat_no" > $1 AND "t1"."booking_id" IS NOT NULL)) ORDER BY "public"."booking"."note" ASC, "public"."booking"."id" DESC LIMIT $2 OFFSET $3
