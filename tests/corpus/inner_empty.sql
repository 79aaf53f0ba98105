--: No row outside at all.
--: verdict: rewrite
--: inner: SELECT FROM booking
--: reference: SELECT q.id FROM (SELECT id FROM booking ORDER BY id LIMIT :limit OFFSET :offset) q WHERE false ORDER BY q.id
SELECT q.id FROM (SELECT id FROM booking ORDER BY id LIMIT :limit OFFSET :offset) q WHERE q.id < 0 ORDER BY q.id
