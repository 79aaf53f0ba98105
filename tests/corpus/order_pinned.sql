--: The filter pins the first key.
--: verdict: rewrite
--: params: 7, :limit
SELECT id FROM booking WHERE venue_id = $1 ORDER BY venue_id DESC, placed_at, note DESC LIMIT $2
