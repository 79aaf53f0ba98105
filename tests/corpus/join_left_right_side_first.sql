--: verdict: rewrite
SELECT b.id, s.seat_no FROM booking b LEFT JOIN seat s ON s.booking_id = b.id ORDER BY s.seat_no DESC NULLS LAST LIMIT :limit
