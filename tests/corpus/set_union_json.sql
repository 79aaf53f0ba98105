--: A column of the union has no order, so it cannot be a key.
--: verdict: pass no_total_order
--: result: text
SELECT id, js FROM kind UNION ALL SELECT id, js FROM kind ORDER BY 1 LIMIT :limit OFFSET :offset
