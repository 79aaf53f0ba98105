--: verdict: rewrite
--: params: :limit, :offset
SELECT id, placed_at FROM booking ORDER BY placed_at ASC, id DESC LIMIT $1 OFFSET $2
