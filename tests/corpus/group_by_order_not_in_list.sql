--: verdict: rewrite
SELECT count(*) FROM booking GROUP BY note, venue_id ORDER BY max(placed_at) DESC, note NULLS FIRST LIMIT :limit
