--: A window function in the list counts all rows, so the page is wrapped.
--: verdict: rewrite
SELECT id, note, count(*) OVER () AS total FROM booking ORDER BY note, id LIMIT :limit OFFSET :offset
