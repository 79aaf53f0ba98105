--: verdict: rewrite
WITH mine AS (SELECT * FROM booking WHERE venue_id = 7) SELECT m.id, o.id FROM mine m JOIN mine o ON o.placed_at = m.placed_at ORDER BY m.note NULLS FIRST, o.note LIMIT :limit
