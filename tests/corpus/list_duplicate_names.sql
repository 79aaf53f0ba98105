--: verdict: rewrite
SELECT b.id, s.id, b.note, s.zone AS note FROM booking b JOIN seat s ON s.booking_id = b.id ORDER BY b.note DESC, s.zone LIMIT :limit
