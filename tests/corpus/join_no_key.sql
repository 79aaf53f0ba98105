--: The joined table has no key.
--: verdict: pass no_total_order
SELECT b.id, h.y FROM booking b JOIN heap h ON h.x = b.id ORDER BY b.id LIMIT :limit
