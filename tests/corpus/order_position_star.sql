--: verdict: rewrite
SELECT b.*, 1 AS one FROM booking b ORDER BY 4, 1 DESC LIMIT :limit
