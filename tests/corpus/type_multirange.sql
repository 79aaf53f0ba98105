--: verdict: rewrite
--: setup: CREATE TABLE spans (id int4 PRIMARY KEY, m int4multirange, c float4[]); INSERT INTO spans SELECT i, (ARRAY['{[1,3)}', NULL, '{}'])[1 + i % 3]::int4multirange, (ARRAY['{1,NaN}', NULL, '{}'])[1 + i % 3]::float4[] FROM generate_series(1, 20) i;
SELECT id FROM spans ORDER BY m DESC, c LIMIT :limit
