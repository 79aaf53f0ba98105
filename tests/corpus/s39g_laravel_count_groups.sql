--: Laravel's count of groups.
--: verdict: pass no_order
select count(*) as aggregate from (select "venue_id" from "bookings" group by "venue_id") as "aggregate_table"
