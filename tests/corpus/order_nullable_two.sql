--: verdict: rewrite
--: params: :limit, :offset
SELECT id FROM booking ORDER BY note NULLS FIRST, paid_at DESC NULLS LAST LIMIT $1 OFFSET $2
