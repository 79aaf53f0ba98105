--: Hibernate's KeyedPage brings its own boundary.
--: verdict: pass already_keyset
--: params: '2026-01-01 00:03:00+00', 20, '2026-01-01 00:03:00+00', :limit
select b1_0.id,b1_0.note,b1_0.placed_at,b1_0.id from booking b1_0 where b1_0.placed_at<$1 or b1_0.id<$2 and b1_0.placed_at=$3 order by b1_0.placed_at desc,b1_0.id desc fetch first $4 rows only
