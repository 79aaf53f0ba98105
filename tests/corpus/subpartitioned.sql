--: verdict: rewrite
--: setup: CREATE TABLE log (day date NOT NULL, kind int4 NOT NULL, id int4 NOT NULL, t text, PRIMARY KEY (day, kind, id)) PARTITION BY RANGE (day); CREATE TABLE log_1 PARTITION OF log FOR VALUES FROM ('2026-01-01') TO ('2026-01-03') PARTITION BY LIST (kind);
--: setup: CREATE TABLE log_1a PARTITION OF log_1 FOR VALUES IN (0); CREATE TABLE log_1b PARTITION OF log_1 FOR VALUES IN (1); CREATE TABLE log_2 PARTITION OF log DEFAULT; INSERT INTO log SELECT date '2026-01-01' + i % 4, i % 2, i, nullif('t' || i % 3, 't2') FROM generate_series(1, 40) i;
SELECT day, id, t FROM log ORDER BY day, t DESC, id LIMIT :limit
