--: The right side's columns may be NULL.
--: verdict: rewrite
--: params: :limit, :offset
SELECT b.id, s.seat_no FROM booking b LEFT JOIN seat s ON s.booking_id = b.id ORDER BY b.placed_at, s.seat_no LIMIT $1 OFFSET $2
