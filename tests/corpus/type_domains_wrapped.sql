--: verdict: rewrite
--: setup: CREATE DOMAIN tone2 AS mood; CREATE TABLE paint2 AS SELECT id, mn::tone2 AS t FROM kind; ALTER TABLE paint2 ADD PRIMARY KEY (id)
SELECT t, id FROM paint2 UNION SELECT t, -id FROM paint2 ORDER BY t DESC, id LIMIT :limit
