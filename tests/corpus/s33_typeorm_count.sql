--: TypeORM's count with joins.
--: verdict: pass no_order
SELECT COUNT(DISTINCT("Booking"."id")) AS "cnt" FROM "booking" "Booking"
