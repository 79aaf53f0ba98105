--: The display order outside is not the page's.
--: verdict: rewrite
--: inner: SELECT FROM booking
--: reference: SELECT q.id, q.title FROM (SELECT id, title FROM booking ORDER BY note DESC, id DESC LIMIT :limit OFFSET :offset) q ORDER BY q.title, q.id
SELECT q.id, q.title FROM (SELECT id, title FROM booking ORDER BY note DESC LIMIT :limit OFFSET :offset) q ORDER BY q.title, q.id
