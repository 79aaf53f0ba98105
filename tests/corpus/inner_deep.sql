--: Three levels down.
--: verdict: rewrite
--: inner: SELECT FROM booking
--: reference: SELECT r.id, r.city FROM (SELECT q.id, v.city FROM (SELECT * FROM booking ORDER BY amount, id LIMIT :limit OFFSET :offset) q JOIN venue v ON v.id = q.venue_id) r WHERE r.city <> 'Oslo' ORDER BY r.city, r.id
SELECT r.id, r.city FROM (SELECT q.id, v.city FROM (SELECT p.* FROM (SELECT * FROM booking ORDER BY amount LIMIT :limit OFFSET :offset) p) q JOIN venue v ON v.id = q.venue_id) r WHERE r.city <> 'Oslo' ORDER BY r.city, r.id
