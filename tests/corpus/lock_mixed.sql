--: A locking statement can be no UNION.
--: verdict: rewrite
--: lookahead: none
SELECT id FROM booking ORDER BY note DESC NULLS LAST, placed_at, id DESC LIMIT :limit OFFSET :offset FOR NO KEY UPDATE
