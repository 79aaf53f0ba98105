--: The page's level is a set operation.
--: verdict: rewrite
--: inner: SELECT id FROM booking UNION SELECT id FROM seat
--: reference: SELECT q.id, b.note FROM (SELECT id FROM booking UNION SELECT id FROM seat ORDER BY id LIMIT :limit OFFSET :offset) q LEFT JOIN booking b ON b.id = q.id ORDER BY q.id
SELECT q.id, b.note FROM (SELECT id FROM booking UNION SELECT id FROM seat ORDER BY id LIMIT :limit OFFSET :offset) q LEFT JOIN booking b ON b.id = q.id ORDER BY q.id
