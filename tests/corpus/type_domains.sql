--: A domain over a domain over an enum, and one over an array.
--: verdict: rewrite
--: setup: CREATE TYPE colour AS ENUM ('red', 'blue'); CREATE DOMAIN tone AS colour; CREATE DOMAIN hue AS tone NOT NULL; CREATE DOMAIN ints AS int4[];
--: setup: CREATE TABLE paint (id int4 PRIMARY KEY, t tone, h hue, i ints); INSERT INTO paint SELECT i, nullif((ARRAY['red', 'blue', 'red'])[1 + i % 3], CASE WHEN i % 4 = 0 THEN 'red' END)::tone, (ARRAY['red', 'blue'])[1 + i % 2]::hue, (ARRAY['{1}', '{2,3}', NULL])[1 + i % 3]::ints FROM generate_series(1, 24) i;
SELECT id FROM paint ORDER BY t NULLS FIRST, h DESC, i LIMIT :limit
