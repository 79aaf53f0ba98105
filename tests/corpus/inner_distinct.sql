--: The ids of a page are found by DISTINCT, and the rows joined outside.
--: verdict: rewrite
--: inner: SELECT DISTINCT b.id FROM booking b JOIN seat s ON s.booking_id = b.id
--: reference: SELECT q.id, s.id FROM (SELECT DISTINCT b.placed_at, b.id FROM booking b JOIN seat s ON s.booking_id = b.id ORDER BY b.placed_at, b.id LIMIT :limit OFFSET :offset) q JOIN seat s ON s.booking_id = q.id ORDER BY q.placed_at, q.id
SELECT q.id, s.id FROM (SELECT DISTINCT b.placed_at, b.id FROM booking b JOIN seat s ON s.booking_id = b.id ORDER BY b.placed_at LIMIT :limit OFFSET :offset) q JOIN seat s ON s.booking_id = q.id ORDER BY q.placed_at, q.id
