--: A constant behind coalesce() is never NULL.
--: verdict: rewrite
SELECT id FROM booking ORDER BY coalesce(note, 'none') DESC, id LIMIT :limit
