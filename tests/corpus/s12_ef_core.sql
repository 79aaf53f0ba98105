--: Entity Framework Core: a tag of TagWith() in front, LIMIT before OFFSET.
--: verdict: rewrite
--: session: SET search_path = ef, public
--: params: :limit, :offset
-- page:bookings

SELECT b."Id", b."Note"
FROM "Bookings" AS b
ORDER BY b."PlacedAt" DESC, b."Id" DESC
LIMIT $1 OFFSET $2
