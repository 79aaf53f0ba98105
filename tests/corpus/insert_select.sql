--: verdict: pass not_select
INSERT INTO heap SELECT id, id FROM booking WHERE id < 0 ORDER BY id LIMIT 3
