--: verdict: pass system_column
SELECT b.id FROM booking b ORDER BY b LIMIT :limit
