--: verdict: rewrite
SELECT id % 5, length(title), id FROM booking ORDER BY 1 DESC, 2 LIMIT :limit
