--: Laravel's count of a page.
--: verdict: pass no_order
--: params: 7
select count(*) as aggregate from "bookings" where "venue_id" = $1
