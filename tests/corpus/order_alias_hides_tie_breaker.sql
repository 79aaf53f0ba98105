--: The tie-breaker must not become the alias.
--: verdict: rewrite
SELECT 1 AS id, title FROM booking ORDER BY title DESC LIMIT :limit
