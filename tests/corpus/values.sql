--: verdict: rewrite
--: options: key=column1
VALUES (3, 'a'), (1, 'b'), (2, NULL) ORDER BY 2 LIMIT :limit
