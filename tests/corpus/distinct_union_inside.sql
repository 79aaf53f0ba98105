--: verdict: rewrite
SELECT DISTINCT q.note FROM (SELECT note FROM booking UNION ALL SELECT zone FROM seat) q ORDER BY q.note DESC NULLS LAST LIMIT :limit
