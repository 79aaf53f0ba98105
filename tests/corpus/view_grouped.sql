--: verdict: rewrite
SELECT * FROM per_venue ORDER BY bookings DESC, venue_id LIMIT :limit
