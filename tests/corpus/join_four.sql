--: verdict: rewrite
--: params: 1, :limit
SELECT b.id, s.id, t.label, v.city FROM booking b JOIN venue v ON v.id = b.venue_id LEFT JOIN seat s ON s.booking_id = b.id LEFT JOIN tag t ON t.booking_id = b.id WHERE v.rank = $1 ORDER BY b.note, t.label DESC LIMIT $2
