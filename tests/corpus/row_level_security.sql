--: Each page runs in the client's own session: its policy holds.
--: verdict: rewrite
--: setup: CREATE TABLE owned (id int4 PRIMARY KEY, owner text NOT NULL, t text); INSERT INTO owned SELECT i, CASE WHEN i % 3 = 0 THEN 'app' ELSE 'other' END, nullif('t' || i % 4, 't1') FROM generate_series(1, 60) i;
--: setup: GRANT SELECT ON owned TO app; ALTER TABLE owned ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON owned TO app USING (owner = current_user);
--: session: SET ROLE app
SELECT id, t FROM owned ORDER BY t, id DESC LIMIT :limit
