--: A materialized view's columns are never NOT NULL, so its unique index may hold NULLs.
--: verdict: pass relation_kind
SELECT id, note FROM stored ORDER BY note LIMIT :limit
