--: verdict: rewrite
SELECT venue_id, note FROM booking INTERSECT SELECT venue_id, note FROM bookings WHERE id > 5 ORDER BY note LIMIT :limit OFFSET :offset
