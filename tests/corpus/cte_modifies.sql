--: verdict: pass cte_modifies
WITH gone AS (DELETE FROM heap WHERE y < 0 RETURNING y) SELECT id FROM booking ORDER BY id LIMIT :limit
