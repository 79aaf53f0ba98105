--: verdict: pass into
CREATE TEMP TABLE copied_too AS SELECT id FROM booking ORDER BY id LIMIT 3
