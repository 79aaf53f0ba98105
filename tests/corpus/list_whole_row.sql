--: verdict: rewrite
SELECT b, b.id FROM booking b ORDER BY b.note, b.placed_at DESC LIMIT :limit
