--: verdict: rewrite
--: options: key='b.id, h.y'
SELECT b.id, h.y FROM booking b JOIN heap h ON h.x = b.id ORDER BY h.z DESC LIMIT :limit
