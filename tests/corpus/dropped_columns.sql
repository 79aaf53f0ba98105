--: Column numbers have holes.
--: verdict: rewrite
--: setup: CREATE TABLE holes (gone1 int4, id int4 PRIMARY KEY, gone2 int4, a text); ALTER TABLE holes DROP gone1, DROP gone2; INSERT INTO holes SELECT i, nullif('a' || i % 3, 'a1') FROM generate_series(1, 20) i;
SELECT *, 1 FROM holes ORDER BY 2, 1 DESC LIMIT :limit
