--: verdict: rewrite
--: inner: SELECT FROM booking
--: reference: SELECT q.id FROM (SELECT id FROM booking ORDER BY placed_at, id LIMIT :limit OFFSET :offset) q
SELECT q.id FROM (SELECT id FROM booking ORDER BY placed_at LIMIT :limit OFFSET :offset) q
