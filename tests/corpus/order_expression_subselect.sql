--: An uncorrelated part and a correlated sub-select as keys.
--: verdict: rewrite
SELECT b.id FROM booking b ORDER BY (SELECT count(*) FROM seat s WHERE s.booking_id = b.id) DESC, b.id LIMIT :limit
