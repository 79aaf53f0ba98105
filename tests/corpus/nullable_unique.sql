--: A unique index lets NULL in more than once.
--: verdict: pass no_total_order
SELECT k, v FROM loose ORDER BY v LIMIT :limit
