--: SQLAlchemy with psycopg: labels and an order by label.
--: verdict: rewrite
--: params: :limit, :offset
SELECT booking.id AS booking_id, lower(booking.title) AS folded 
FROM booking ORDER BY folded DESC, booking.placed_at 
 LIMIT $1 OFFSET $2
