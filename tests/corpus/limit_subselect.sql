--: verdict: pass limit_expression
SELECT id FROM booking ORDER BY id LIMIT (SELECT 3)
