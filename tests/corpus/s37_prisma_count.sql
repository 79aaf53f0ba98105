--: Prisma's count.
--: verdict: pass no_order
--: params: :offset
SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."Booking"."id" FROM "public"."Booking" WHERE 1=1 OFFSET $1) AS "sub"
