--: verdict: rewrite
SELECT b.note, s.id FROM booking b JOIN seat s ON s.booking_id = b.id ORDER BY b.note, s.zone DESC, s.id LIMIT :limit OFFSET :offset
