--: verdict: rewrite
SELECT id FROM booking ORDER BY note, note DESC, placed_at, id LIMIT :limit
