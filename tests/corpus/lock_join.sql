--: verdict: rewrite
--: lookahead: none
SELECT b.id, s.id FROM booking b JOIN seat s ON s.booking_id = b.id ORDER BY b.placed_at DESC, s.zone FOR SHARE OF b LIMIT :limit
