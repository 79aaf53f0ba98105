--: verdict: rewrite
SELECT title, count(*) AS n, max(paid_at) AS last FROM booking GROUP BY title ORDER BY n DESC, last LIMIT :limit
