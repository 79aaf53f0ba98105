--: Diesel: everything quoted, the numbers last.
--: verdict: rewrite
--: params: 7, :limit, :offset
SELECT "bookings"."id", "bookings"."venue_id", "bookings"."note" FROM "bookings" WHERE ("bookings"."venue_id" = $1) ORDER BY "bookings"."placed_at" DESC , "bookings"."id" DESC  LIMIT $2 OFFSET $3
