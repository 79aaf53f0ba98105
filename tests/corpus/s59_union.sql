--: UNION makes its rows different from each other: the whole list is a key.
--: verdict: rewrite
SELECT id, note FROM booking UNION SELECT id, zone FROM seat ORDER BY 2, 1 DESC LIMIT :limit OFFSET :offset
