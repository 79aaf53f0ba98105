--: verdict: rewrite
SELECT date_trunc('hour', paid_at) AS hour, count(*) FROM booking GROUP BY 1 ORDER BY hour DESC NULLS LAST LIMIT :limit
