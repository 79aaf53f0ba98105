--: An inner join outside that drops whole pages.
--: verdict: rewrite
--: params: :limit, :offset
--: inner: SELECT FROM booking
--: reference: SELECT q.id, v.city FROM (SELECT * FROM booking ORDER BY id LIMIT :limit OFFSET :offset) q JOIN venue v ON v.id = q.venue_id AND q.id BETWEEN 20 AND 23 ORDER BY q.id
SELECT q.id, v.city FROM (SELECT * FROM booking ORDER BY id LIMIT $1 OFFSET $2) q JOIN venue v ON v.id = q.venue_id AND q.id BETWEEN 20 AND 23 ORDER BY q.id
