--: verdict: rewrite
SELECT * FROM booked ORDER BY zone, placed_at DESC, seat_id LIMIT :limit
