--: verdict: pass not_select
DELETE FROM heap WHERE y IN (SELECT y FROM heap WHERE y < 0 ORDER BY y LIMIT 5)
