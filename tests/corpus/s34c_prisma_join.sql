--: Prisma's relationJoins: a lateral sub-select that makes JSON.
--: verdict: rewrite
--: params: :limit, :offset
SELECT "t1"."id", "t1"."note", "Booking_seats"."__prisma_data__" AS "seats" FROM "public"."booking" AS "t1" LEFT JOIN LATERAL (SELECT COALESCE(JSONB_AGG("__prisma_data__"), '[]') AS "__prisma_data__" FROM (SELECT "t3"."__prisma_data__" FROM (SELECT JSONB_BUILD_OBJECT('id', "t2"."id") AS "__prisma_data__" FROM (SELECT "t2".* FROM "public"."seat" AS "t2" WHERE "t1"."id" = "t2"."booking_id") AS "t2") AS "t3") AS "t4") AS "Booking_seats" ON TRUE ORDER BY "t1"."placed_at" DESC LIMIT $1 OFFSET $2
