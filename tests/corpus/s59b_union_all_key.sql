--: UNION ALL with a key that the tag names.
--: verdict: rewrite
--: options: key=id
(SELECT id, note FROM booking) UNION ALL (SELECT id + 1000, zone FROM seat) ORDER BY 2 DESC LIMIT :limit OFFSET :offset
