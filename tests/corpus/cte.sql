--: verdict: rewrite
--: params: 7, :limit, :offset
WITH mine AS (SELECT * FROM booking WHERE venue_id = $1) SELECT m.id, m.note FROM mine m ORDER BY m.note, m.placed_at DESC LIMIT $2 OFFSET $3
