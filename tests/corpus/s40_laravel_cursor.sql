--: Laravel's cursorPaginate() is a keyset already.
--: verdict: pass already_keyset
--: params: '2026-01-01 00:03:00+00', '2026-01-01 00:03:00+00', 20
select * from "bookings" where ("placed_at" < $1 or ("placed_at" = $2 and ("id" < $3))) order by "placed_at" desc, "id" desc limit 21
