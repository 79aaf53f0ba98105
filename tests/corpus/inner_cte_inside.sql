--: The page's level has a CTE of its own.
--: verdict: rewrite
--: inner: SELECT FROM booking WHERE venue_id = 7
--: reference: SELECT q.id, s.id FROM (SELECT id, placed_at FROM booking WHERE venue_id = 7 ORDER BY placed_at DESC, id DESC LIMIT :limit OFFSET :offset) q LEFT JOIN seat s ON s.booking_id = q.id ORDER BY q.placed_at DESC
SELECT q.id, s.id FROM (WITH mine AS (SELECT id, placed_at FROM booking WHERE venue_id = 7) SELECT m.id, m.placed_at FROM mine m ORDER BY m.placed_at DESC LIMIT :limit OFFSET :offset) q LEFT JOIN seat s ON s.booking_id = q.id ORDER BY q.placed_at DESC
