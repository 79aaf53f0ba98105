--: A correlated level is many pages and not one.
--: verdict: pass correlated
SELECT b.id, s.id FROM booking b CROSS JOIN LATERAL (SELECT id FROM seat WHERE seat.booking_id = b.id ORDER BY id LIMIT 2) s ORDER BY b.id, s.id
