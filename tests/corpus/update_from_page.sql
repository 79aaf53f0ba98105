--: The page's rows feed a write.
--: verdict: pass not_select
UPDATE heap SET z = 'changed' FROM (SELECT y FROM heap WHERE y < 0 ORDER BY y LIMIT 5) q WHERE heap.y = q.y RETURNING heap.y
