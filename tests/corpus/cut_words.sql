--: Words of clauses as labels, in strings and in deeper brackets.
--: verdict: rewrite
SELECT id AS limit, note AS "from", extract(hour FROM placed_at) AS hour, id IS NOT DISTINCT FROM 3 AS "order" FROM booking WHERE title <> ' LIMIT 3' ORDER BY hour, "from" LIMIT :limit
