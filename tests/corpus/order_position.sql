--: verdict: rewrite
SELECT note, id, placed_at FROM booking ORDER BY 3 DESC, 1 NULLS FIRST, 2 LIMIT :limit
