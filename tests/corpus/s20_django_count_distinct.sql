--: Django counts distinct rows.
--: verdict: pass no_order
SELECT COUNT(*) FROM (SELECT DISTINCT "shop_booking"."id" AS "col1" FROM "shop_booking") subquery
