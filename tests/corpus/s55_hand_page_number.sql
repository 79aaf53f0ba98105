--: Written by hand: a page number in arithmetic.
--: verdict: rewrite
--: params: :limit, 1
--: ties: SELECT id, note FROM booking ORDER BY placed_at DESC
SELECT id, note FROM booking ORDER BY placed_at DESC LIMIT $1 OFFSET ($2 - 1) * $1
