--: verdict: rewrite
SELECT s.id, b.note, b.id FROM seat s RIGHT JOIN booking b ON b.id = s.booking_id ORDER BY b.note DESC, s.zone LIMIT :limit
