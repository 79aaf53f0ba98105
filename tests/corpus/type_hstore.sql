--: The opclass' operators are not named < and >.
--: verdict: rewrite
SELECT id FROM kind ORDER BY h DESC, id LIMIT :limit
