--: Hibernate fetches a collection without LIMIT and trims in memory.
--: verdict: pass no_limit
select b1_0.id,s1_0.booking_id,s1_0.seat_no from booking b1_0 left join seat s1_0 on b1_0.id=s1_0.booking_id order by b1_0.id
