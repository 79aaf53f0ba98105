--: verdict: rewrite
SELECT b.id, s.id FROM booking b FULL JOIN seat s ON s.booking_id = b.id AND b.venue_id = 7 ORDER BY b.placed_at, s.seat_no DESC LIMIT :limit
