--: verdict: rewrite
--: setup: CREATE TABLE prices (id int4 PRIMARY KEY, m money); INSERT INTO prices SELECT i, nullif(i % 4, 1)::money FROM generate_series(1, 20) i;
SELECT id, m FROM prices ORDER BY m DESC LIMIT :limit
