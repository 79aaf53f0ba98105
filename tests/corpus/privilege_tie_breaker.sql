--: The role may not read the key that would break ties.
--: verdict: pass key_privilege
--: setup: CREATE TABLE masked (id int4 PRIMARY KEY, t text NOT NULL); INSERT INTO masked SELECT i, 't' || i % 3 FROM generate_series(1, 20) i; GRANT SELECT (t) ON masked TO app;
--: session: SET ROLE app
SELECT t FROM masked ORDER BY t LIMIT :limit
