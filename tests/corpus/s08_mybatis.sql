--: MyBatis PageHelper and Spring JDBC: an order with ties.
--: verdict: rewrite
--: params: 7, :limit, :offset
SELECT id, note FROM booking WHERE venue_id = $1 ORDER BY placed_at DESC LIMIT $2 OFFSET $3
