--: Django's paginator counts.
--: verdict: pass no_order
SELECT COUNT(*) AS "__count" FROM "shop_booking" WHERE "shop_booking"."venue_id" = 7
