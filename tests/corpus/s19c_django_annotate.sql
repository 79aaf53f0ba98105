--: Django's annotate(Count()): the order is an aggregate.
--: verdict: rewrite
SELECT "shop_booking"."id", "shop_booking"."note", COUNT("shop_seat"."id") AS "seats" FROM "shop_booking" LEFT OUTER JOIN "shop_seat" ON ("shop_booking"."id" = "shop_seat"."booking_id") GROUP BY "shop_booking"."id" ORDER BY "seats" DESC, "shop_booking"."id" ASC LIMIT :limit OFFSET :offset
