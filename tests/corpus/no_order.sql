--: verdict: pass no_order
SELECT id FROM booking LIMIT :limit
