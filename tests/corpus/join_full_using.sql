--: verdict: rewrite
SELECT b.note, t.note FROM booking b FULL JOIN (SELECT id + 10 AS id, note FROM bookings) t USING (id) ORDER BY id LIMIT :limit
