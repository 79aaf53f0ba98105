--: Rails' eager_load asks for the ids of a page first.
--: verdict: rewrite
--: params: :limit, :offset
SELECT DISTINCT "bookings"."placed_at" AS alias_0, "bookings"."id" FROM "bookings" LEFT OUTER JOIN "seats" ON "seats"."booking_id" = "bookings"."id" ORDER BY "bookings"."placed_at" DESC LIMIT $1 OFFSET $2
