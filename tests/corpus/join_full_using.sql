--: The merged column is a key where it is one on both sides.
--: verdict: rewrite
SELECT booking.note, t.note FROM booking FULL JOIN (SELECT id, note FROM bookings WHERE id % 2 = 0) t USING (id) ORDER BY booking.note DESC, t.note LIMIT :limit
