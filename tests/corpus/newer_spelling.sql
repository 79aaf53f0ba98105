--: PostgreSQL 16 and later read 1_0 as 10.
--: verdict: pass syntax
--: since: 16
SELECT id FROM booking ORDER BY id LIMIT 1_0
