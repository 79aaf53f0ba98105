--: Django's distinct() over a join.
--: verdict: rewrite
SELECT DISTINCT "shop_booking"."id", "shop_booking"."note", "shop_booking"."placed_at" FROM "shop_booking" INNER JOIN "shop_seat" ON ("shop_booking"."id" = "shop_seat"."booking_id") WHERE "shop_seat"."seat_no" > 5 ORDER BY "shop_booking"."placed_at" DESC LIMIT :limit OFFSET :offset
