--: verdict: pass no_total_order
SELECT x, y FROM heap ORDER BY x LIMIT :limit
