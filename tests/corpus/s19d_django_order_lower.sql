--: Django's order_by(Lower()).
--: verdict: rewrite
SELECT "shop_booking"."id" FROM "shop_booking" ORDER BY LOWER("shop_booking"."note") ASC NULLS LAST, "shop_booking"."id" ASC LIMIT :limit OFFSET :offset
