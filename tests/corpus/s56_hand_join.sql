--: Written by hand: parent's order, children's rows.
--: verdict: rewrite
--: params: :limit
SELECT b.id, b.note, s.seat_no FROM booking b JOIN seat s ON s.booking_id = b.id ORDER BY b.placed_at DESC, b.id LIMIT $1
