--: Rails with query log tags.
--: verdict: rewrite
--: params: 7, :limit, :offset
SELECT "bookings".* FROM "bookings" WHERE "bookings"."venue_id" = $1 ORDER BY "bookings"."placed_at" DESC LIMIT $2 OFFSET $3 /*application='Shop',page='bookings'*/
