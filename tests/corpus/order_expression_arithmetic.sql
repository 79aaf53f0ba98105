--: verdict: rewrite
--: params: 3, :limit
SELECT id, amount FROM booking ORDER BY amount * $1 DESC, placed_at LIMIT $2
