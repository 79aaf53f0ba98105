--: verdict: rewrite
SELECT b.id, s.id FROM booking b CROSS JOIN LATERAL (SELECT id, zone FROM seat WHERE seat.booking_id = b.id) s ORDER BY s.zone, b.placed_at DESC LIMIT :limit
