--: verdict: rewrite
SELECT b.id, s.id FROM booking b, seat s, venue v WHERE s.booking_id = b.id AND v.id = b.venue_id ORDER BY v.rank DESC, b.placed_at LIMIT :limit
