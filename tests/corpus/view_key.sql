--: verdict: rewrite
--: options: key=seat_id
SELECT seat_id, note FROM booked ORDER BY note LIMIT :limit
