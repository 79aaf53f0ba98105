--: The page's level is joined with itself through a CTE.
--: verdict: rewrite
--: inner: SELECT FROM booking
--: reference: WITH p AS (SELECT id, note FROM booking ORDER BY note DESC, id DESC LIMIT :limit OFFSET :offset) SELECT a.id, b.id FROM p a JOIN p b ON b.note = a.note ORDER BY a.note DESC
WITH p AS (SELECT id, note FROM booking ORDER BY note DESC LIMIT :limit OFFSET :offset) SELECT a.id, b.id FROM p a JOIN p b ON b.note = a.note ORDER BY a.note DESC
