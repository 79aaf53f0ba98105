--: verdict: rewrite
SELECT booking_id, s.id, t.label FROM seat s JOIN tag t USING (booking_id) ORDER BY booking_id, s.seat_no, t.label DESC LIMIT :limit
