--: GORM: mixed directions.
--: verdict: rewrite
--: params: 7, :limit, :offset
SELECT * FROM "bookings" WHERE venue_id = $1 AND "bookings"."deleted_at" IS NULL ORDER BY placed_at desc, id LIMIT $2 OFFSET $3
