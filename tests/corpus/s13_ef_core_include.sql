--: Entity Framework's Include: the page is the level inside, and the join outside adds rows.
--: verdict: rewrite
--: session: SET search_path = ef, public
--: params: :limit, :offset
--: inner: SELECT FROM ef."Bookings"
--: reference: SELECT b0."Id", b0."Note", s."SeatNo" FROM (SELECT b."Id", b."Note", b."PlacedAt" FROM ef."Bookings" AS b ORDER BY b."PlacedAt" DESC, b."Id" DESC LIMIT :limit OFFSET :offset) AS b0
--: reference: LEFT JOIN ef."Seats" AS s ON b0."Id" = s."BookingId" ORDER BY b0."PlacedAt" DESC, b0."Id"
SELECT b0."Id", b0."Note", s."SeatNo"
FROM (
    SELECT b."Id", b."Note", b."PlacedAt"
    FROM "Bookings" AS b
    ORDER BY b."PlacedAt" DESC
    LIMIT $1 OFFSET $2
) AS b0
LEFT JOIN "Seats" AS s ON b0."Id" = s."BookingId"
ORDER BY b0."PlacedAt" DESC, b0."Id"
