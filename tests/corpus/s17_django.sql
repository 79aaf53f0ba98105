--: Django: literals, everything quoted.
--: verdict: rewrite
SELECT "shop_booking"."id", "shop_booking"."note" FROM "shop_booking" WHERE "shop_booking"."venue_id" = 7 ORDER BY "shop_booking"."placed_at" DESC, "shop_booking"."id" DESC LIMIT :limit OFFSET :offset
