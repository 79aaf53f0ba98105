--: PageHelper's count.
--: verdict: pass no_order
--: params: 7
SELECT count(0) FROM booking WHERE venue_id = $1
