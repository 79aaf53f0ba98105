--: Spring Data's count beside a Page.
--: verdict: pass no_order
--: params: 7
select count(b1_0.id) from booking b1_0 where b1_0.venue_id=$1
