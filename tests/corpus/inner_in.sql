--: LIMIT in a sub-select of IN is a filter.
--: verdict: pass no_limit
SELECT id FROM booking WHERE id IN (SELECT booking_id FROM seat ORDER BY booking_id LIMIT 3) ORDER BY id
