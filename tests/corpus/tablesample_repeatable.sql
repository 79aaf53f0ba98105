--: A sample that can be repeated is a filter.
--: verdict: rewrite
SELECT id FROM booking TABLESAMPLE bernoulli (60) REPEATABLE (3) ORDER BY note, id LIMIT :limit
