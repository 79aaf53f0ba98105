--: ... unless the tag names it.
--: verdict: rewrite
--: options: key=id
SELECT id, placed_at FROM latest(7) ORDER BY placed_at LIMIT :limit
