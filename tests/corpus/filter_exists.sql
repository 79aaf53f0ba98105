--: verdict: rewrite
--: params: 20, :limit
SELECT b.id, b.note FROM booking b WHERE EXISTS (SELECT 1 FROM seat s WHERE s.booking_id = b.id AND s.seat_no > $1) ORDER BY b.note DESC, b.placed_at LIMIT $2
