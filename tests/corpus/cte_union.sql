--: verdict: rewrite
WITH things AS (SELECT id, note AS t FROM booking UNION SELECT id + 100, zone FROM seat) SELECT t, id FROM things ORDER BY t DESC, id LIMIT :limit
