--: A column of the list has no order, so nothing can break ties.
--: verdict: pass key_type
SELECT DISTINCT x, v FROM kind ORDER BY v LIMIT :limit
