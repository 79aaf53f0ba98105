--: Hibernate 6: lower case, the clauses of SQL:2008, OFFSET before FETCH.
--: verdict: rewrite
--: params: 7, :offset, :limit
select b1_0.id,b1_0.placed_at,b1_0.note from booking b1_0 where b1_0.venue_id=$1 order by b1_0.placed_at desc,b1_0.id desc offset $2 rows fetch first $3 rows only
