--: verdict: rewrite
--: setup: CREATE TABLE made (id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a int4, twice int4 GENERATED ALWAYS AS (a * 2) STORED); INSERT INTO made (a) SELECT nullif(i % 5, 2) FROM generate_series(1, 25) i;
SELECT id, twice FROM made ORDER BY twice DESC NULLS LAST LIMIT :limit
