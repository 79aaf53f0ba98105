--: The server refuses it.
--: verdict: error
SELECT note FROM booking GROUP BY note ORDER BY note LIMIT :limit FOR UPDATE
