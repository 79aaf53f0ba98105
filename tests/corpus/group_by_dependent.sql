--: The list holds columns that depend on the grouped primary key.
--: verdict: rewrite
SELECT b.id, b.note, count(s.id) FROM booking b LEFT JOIN seat s ON s.booking_id = b.id GROUP BY b.id ORDER BY b.note, count(s.id) DESC LIMIT :limit
