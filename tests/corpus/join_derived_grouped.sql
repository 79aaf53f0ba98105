--: The derived table's key is what it groups by.
--: verdict: rewrite
SELECT b.id, n.seats FROM booking b LEFT JOIN (SELECT booking_id, count(*) AS seats FROM seat GROUP BY booking_id) n ON n.booking_id = b.id ORDER BY n.seats DESC NULLS LAST, b.placed_at LIMIT :limit
