--: Entity Framework's Include of two collections, with a filter inside.
--: verdict: rewrite
--: session: SET search_path = ef, public
--: params: 7, :limit, :offset
--: inner: SELECT FROM ef."Bookings" WHERE "VenueId" = 7
--: reference: SELECT b0."Id", s."Id", s0."Id" FROM (SELECT b."Id", b."PlacedAt" FROM ef."Bookings" AS b WHERE b."VenueId" = 7 ORDER BY b."PlacedAt", b."Id" LIMIT :limit OFFSET :offset) AS b0
--: reference: LEFT JOIN ef."Seats" AS s ON b0."Id" = s."BookingId" LEFT JOIN ef."Seats" AS s0 ON b0."Id" = s0."BookingId" ORDER BY b0."PlacedAt", b0."Id", s."Id"
SELECT b0."Id", s."Id", s0."Id"
FROM (
    SELECT b."Id", b."PlacedAt"
    FROM "Bookings" AS b
    WHERE b."VenueId" = $1
    ORDER BY b."PlacedAt"
    LIMIT $2 OFFSET $3
) AS b0
LEFT JOIN "Seats" AS s ON b0."Id" = s."BookingId"
LEFT JOIN "Seats" AS s0 ON b0."Id" = s0."BookingId"
ORDER BY b0."PlacedAt", b0."Id", s."Id"
