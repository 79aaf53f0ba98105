--: An anti-join.
--: verdict: rewrite
SELECT b.id FROM booking b LEFT JOIN seat s ON s.booking_id = b.id WHERE s.id IS NULL ORDER BY b.placed_at LIMIT :limit
