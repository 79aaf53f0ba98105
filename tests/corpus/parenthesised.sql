--: verdict: either parenthesised
(SELECT id FROM booking ORDER BY note, id) LIMIT :limit
