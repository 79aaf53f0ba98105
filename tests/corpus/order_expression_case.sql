--: verdict: rewrite
SELECT id FROM booking ORDER BY CASE WHEN venue_id = 7 THEN 0 ELSE 1 END, paid_at DESC NULLS LAST, id DESC LIMIT :limit OFFSET :offset
