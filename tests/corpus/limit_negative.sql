--: The server's own error is the answer.
--: verdict: error
SELECT id FROM booking ORDER BY id LIMIT -1
