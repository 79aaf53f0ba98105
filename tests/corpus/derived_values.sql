--: verdict: rewrite
--: options: key=n
SELECT v.n, v.t FROM (VALUES (1, 'a'), (2, 'a'), (3, NULL), (4, 'b')) v(n, t) ORDER BY v.t LIMIT :limit
