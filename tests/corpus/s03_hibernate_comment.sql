--: Hibernate with hibernate.use_sql_comments.
--: verdict: rewrite
--: params: :offset, :limit
/* page:bookings */ select b1_0.id from booking b1_0 order by b1_0.id offset $1 rows fetch first $2 rows only
