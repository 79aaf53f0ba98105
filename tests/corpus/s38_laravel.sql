--: Laravel's paginate(): lower case, literal numbers.
--: verdict: rewrite
--: params: 7
select * from "bookings" where "venue_id" = $1 and "bookings"."deleted_at" is null order by "placed_at" desc limit :limit offset :offset
