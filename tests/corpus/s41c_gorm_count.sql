--: GORM's Count().
--: verdict: pass no_order
--: params: 7
SELECT count(*) FROM "bookings" WHERE venue_id = $1 AND "bookings"."deleted_at" IS NULL
