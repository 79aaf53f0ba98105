--: verdict: rewrite
SELECT id, booking.note, bookings.note FROM booking LEFT JOIN bookings USING (id, note) ORDER BY booking.title, id DESC LIMIT :limit
