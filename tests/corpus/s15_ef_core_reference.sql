--: Entity Framework's Include of one entity: a join at the level of the page.
--: verdict: rewrite
--: session: SET search_path = ef, public
--: params: :limit, :offset
SELECT b."Id", b."Note", v.id, v.city
FROM "Bookings" AS b
LEFT JOIN venue AS v ON b."VenueId" = v.id
ORDER BY v.city, b."PlacedAt" DESC
LIMIT $1 OFFSET $2
