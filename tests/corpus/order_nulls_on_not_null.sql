--: A placement that means nothing.
--: verdict: rewrite
SELECT id FROM booking ORDER BY placed_at DESC NULLS LAST, id NULLS FIRST LIMIT :limit
