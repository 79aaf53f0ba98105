--: Knex, Kysely, Drizzle.
--: verdict: rewrite
--: params: 7, :limit, :offset
select "id", "note" from "bookings" where "venue_id" = $1 order by "placed_at" desc limit $2 offset $3
