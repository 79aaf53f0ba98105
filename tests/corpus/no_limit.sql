--: verdict: pass no_limit
SELECT id FROM booking ORDER BY id
