--: A materialized view's columns are never NOT NULL, so its unique index may hold NULLs.
--: verdict: pass no_total_order
SELECT id, note FROM stored ORDER BY note LIMIT :limit
