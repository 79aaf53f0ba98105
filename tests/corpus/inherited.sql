--: The parent's unique index does not reach its children.
--: verdict: pass inheritance
SELECT id, name FROM animal ORDER BY name LIMIT :limit
