--: verdict: rewrite
SELECT x.v, x.n FROM unnest(ARRAY['b', 'a', NULL, 'b']) WITH ORDINALITY AS x(v, n) ORDER BY x.v LIMIT :limit
