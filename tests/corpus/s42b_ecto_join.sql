--: Ecto with a join and an order over both tables.
--: verdict: rewrite
--: params: :limit, :offset
SELECT b0."id", s1."id" FROM "bookings" AS b0 INNER JOIN "seats" AS s1 ON s1."booking_id" = b0."id" ORDER BY b0."placed_at", s1."seat_no" DESC LIMIT $1 OFFSET $2
