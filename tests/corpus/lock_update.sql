--: verdict: rewrite
--: lookahead: none
SELECT id, note FROM booking ORDER BY placed_at, id LIMIT :limit FOR UPDATE
