--: verdict: rewrite
SELECT title, count(*) FILTER (WHERE note IS NULL) AS quiet, array_agg(id ORDER BY id) AS ids FROM booking GROUP BY title ORDER BY quiet DESC, 1 LIMIT :limit
