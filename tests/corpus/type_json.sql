--: json has no order; the server says so.
--: verdict: error
SELECT id FROM kind ORDER BY js, id LIMIT :limit
