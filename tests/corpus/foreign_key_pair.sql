--: A composite reference: the join adds at most one row.
--: verdict: rewrite
--: setup: CREATE TABLE line (id int4 PRIMARY KEY, a int4, b int4, FOREIGN KEY (a, b) REFERENCES pair); INSERT INTO line SELECT i, nullif(i % 5, 3), i % 8 FROM generate_series(1, 30) i;
SELECT l.id, p.c, p.d FROM line l LEFT JOIN pair p ON (p.a, p.b) = (l.a, l.b) ORDER BY p.d, p.c DESC LIMIT :limit
