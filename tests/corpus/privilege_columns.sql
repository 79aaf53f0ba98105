--: The role may read what the page needs, and no more.
--: verdict: rewrite
--: setup: CREATE TABLE partly (id int4 PRIMARY KEY, t text, secret text); INSERT INTO partly SELECT i, nullif('t' || i % 3, 't1') FROM generate_series(1, 20) i; GRANT SELECT (id, t) ON partly TO app;
--: session: SET ROLE app
SELECT t FROM partly ORDER BY t DESC LIMIT :limit
