--: SeaORM's num_items().
--: verdict: pass no_order
SELECT COUNT(*) AS num_items FROM (SELECT "booking"."id" FROM "booking") AS "sub_query"
