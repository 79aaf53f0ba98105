--: A type whose values cannot be asked for in binary is no key.
--: verdict: pass key_type
--: result: text
--: setup: CREATE EXTENSION seg; CREATE TABLE ruler (id int4 PRIMARY KEY, s seg NOT NULL); INSERT INTO ruler SELECT i, (i % 3 || ' .. 5')::seg FROM generate_series(1, 12) i;
SELECT id, s FROM ruler ORDER BY s, id LIMIT :limit
