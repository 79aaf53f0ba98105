--: Ecto: short aliases.
--: verdict: rewrite
--: params: 7, :limit, :offset
SELECT b0."id", b0."note", b0."placed_at" FROM "bookings" AS b0 WHERE (b0."venue_id" = $1) ORDER BY b0."placed_at" DESC, b0."id" LIMIT $2 OFFSET $3
