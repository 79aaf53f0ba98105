--: Django's select_related() over a nullable reference.
--: verdict: rewrite
SELECT "shop_booking"."id", "shop_seat"."id", "shop_seat"."seat_no" FROM "shop_booking" LEFT OUTER JOIN "shop_seat" ON ("shop_booking"."id" = "shop_seat"."booking_id") ORDER BY "shop_seat"."seat_no" ASC NULLS FIRST, "shop_booking"."placed_at" DESC LIMIT :limit OFFSET :offset
