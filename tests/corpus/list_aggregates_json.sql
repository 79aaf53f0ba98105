--: verdict: rewrite
SELECT b.id, (SELECT json_agg(s.id ORDER BY s.id) FROM seat s WHERE s.booking_id = b.id) AS seats, row_to_json(b) FROM booking b ORDER BY b.title, b.note DESC NULLS LAST LIMIT :limit
