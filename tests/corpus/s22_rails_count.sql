--: The count of kaminari and pagy.
--: verdict: pass no_order
--: params: 7
SELECT COUNT(*) FROM "bookings" WHERE "bookings"."venue_id" = $1
