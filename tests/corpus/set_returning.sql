--: verdict: pass set_returning
SELECT id, unnest(ARRAY[1, 2]) FROM booking ORDER BY id LIMIT :limit
