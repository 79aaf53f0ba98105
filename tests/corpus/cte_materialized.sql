--: verdict: rewrite
WITH n AS MATERIALIZED (SELECT booking_id, count(*) AS seats FROM seat GROUP BY booking_id) SELECT b.id, n.seats FROM n JOIN booking b ON b.id = n.booking_id ORDER BY n.seats DESC LIMIT :limit
