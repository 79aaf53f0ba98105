--: A volatile filter keeps the page from being a union.
--: verdict: rewrite
SELECT id FROM booking WHERE random() < 2 ORDER BY note DESC, id LIMIT :limit
