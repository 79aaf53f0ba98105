--: Drizzle's relational query: a lateral sub-select around the rows, JSON inside.
--: verdict: rewrite
--: params: :limit, :offset
select "bookings"."id", "bookings"."note", "bookings_seats"."data" as "seats" from "bookings" "bookings" left join lateral (select coalesce(json_agg(json_build_array("bookings_seats"."id")), '[]'::json) as "data" from "seats" "bookings_seats" where "bookings_seats"."booking_id" = "bookings"."id") "bookings_seats" on true order by "bookings"."placed_at" desc limit $1 offset $2
