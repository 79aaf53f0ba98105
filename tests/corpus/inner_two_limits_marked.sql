--: The tag stands inside the level that is the page.
--: verdict: rewrite
--: inner: SELECT FROM booking
--: reference: SELECT q.id FROM (SELECT id, note FROM booking ORDER BY note, id LIMIT :limit OFFSET :offset) q ORDER BY q.id
SELECT q.id FROM (SELECT id, note FROM booking ORDER BY note, id LIMIT :limit OFFSET :offset :tag) q ORDER BY q.id LIMIT 1000
