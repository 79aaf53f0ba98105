--: UNION ALL may hold a row twice, so nothing tells all rows apart.
--: verdict: pass no_total_order
(SELECT id, note FROM booking) UNION ALL (SELECT id, zone FROM seat) ORDER BY 1 LIMIT :limit OFFSET :offset
