--: verdict: rewrite
SELECT id FROM kind ORDER BY js ->> 'x', j LIMIT :limit
