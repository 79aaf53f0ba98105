--: LIMIT in a sub-select of IN belongs to the filter; the statement has its own.
--: verdict: rewrite
SELECT id FROM booking WHERE id IN (SELECT booking_id FROM seat ORDER BY booking_id, id LIMIT 30) ORDER BY note, id LIMIT :limit
