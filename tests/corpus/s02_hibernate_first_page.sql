--: Hibernate 6 leaves OFFSET out on the first page.
--: verdict: rewrite
--: params: :limit
select b1_0.id,b1_0.note from booking b1_0 order by b1_0.id fetch first $1 rows only
