--: Npgsql's EF.Functions.GreaterThan over tuples.
--: verdict: pass already_keyset
--: session: SET search_path = ef, public
--: params: '2026-01-01 00:03:00+00', 20, :limit
SELECT b."Id" FROM "Bookings" AS b WHERE (b."PlacedAt", b."Id") > ($1, $2) ORDER BY b."PlacedAt", b."Id" LIMIT $3
