--: The arms have different types: the union's are the keys'.
--: verdict: rewrite
SELECT id::int4 AS n, 'booking' AS what FROM booking UNION SELECT amount, 'amount' FROM booking ORDER BY n, what LIMIT :limit OFFSET :offset
