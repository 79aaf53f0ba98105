--: verdict: rewrite
--: setup: CREATE DOMAIN tone AS mood; CREATE DOMAIN hue AS tone NOT NULL; CREATE DOMAIN span AS int4range; CREATE TABLE paint AS SELECT id, mn::tone AS t, m::hue AS h, rn::span AS r FROM kind; ALTER TABLE paint ADD PRIMARY KEY (id)
SELECT id, t, r FROM paint ORDER BY t NULLS FIRST, r DESC NULLS LAST, h DESC LIMIT :limit
