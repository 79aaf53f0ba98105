--: verdict: rewrite
--: params: :limit, :offset
SELECT id FROM booking ORDER BY paid_at DESC, note, parent_id NULLS FIRST LIMIT $1 OFFSET $2
