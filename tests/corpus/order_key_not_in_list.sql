--: verdict: rewrite
SELECT note FROM booking ORDER BY paid_at NULLS FIRST, placed_at DESC LIMIT :limit OFFSET :offset
