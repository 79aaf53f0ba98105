--: verdict: rewrite
--: params: :limit
SELECT id FROM booking ORDER BY title DESC, placed_at, amount DESC LIMIT $1
