--: The newest seat of each booking, looked up in the list.
--: verdict: rewrite
SELECT b.id, (SELECT s.seat_no FROM seat s WHERE s.booking_id = b.id ORDER BY s.seat_no DESC LIMIT 1) AS newest FROM booking b ORDER BY b.note, b.id LIMIT :limit
