--: verdict: rewrite
--: inner: SELECT FROM booking
--: reference: SELECT json_agg(q.id) FROM (SELECT id FROM booking ORDER BY note, id LIMIT :limit OFFSET :offset) q
--: collect: 1
SELECT json_agg(q.id) FROM (SELECT id FROM booking ORDER BY note, id LIMIT :limit OFFSET :offset) q
