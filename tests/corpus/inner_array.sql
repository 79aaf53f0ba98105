--: The page is an argument: ARRAY(SELECT ... LIMIT) is no level of rows.
--: verdict: pass no_limit
SELECT ARRAY(SELECT id FROM booking ORDER BY id LIMIT 5) AS ids ORDER BY 1
