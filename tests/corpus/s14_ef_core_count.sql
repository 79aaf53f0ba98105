--: Entity Framework's CountAsync().
--: verdict: pass no_order
--: session: SET search_path = ef, public
--: params: 7
SELECT count(*)::int
FROM "Bookings" AS b
WHERE b."VenueId" = $1
