--: A page over the catalog: its tables have keys, as other tables do.
--: verdict: rewrite
SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relname LIKE 'pg_am%' AND a.attnum > 0 ORDER BY c.relkind, a.attname DESC LIMIT :limit
