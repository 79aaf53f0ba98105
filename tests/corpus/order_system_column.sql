--: verdict: pass system_column
SELECT id FROM booking ORDER BY ctid LIMIT :limit
