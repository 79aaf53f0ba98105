--: verdict: rewrite
SELECT id FROM guarded ORDER BY placed_at DESC, id LIMIT :limit
