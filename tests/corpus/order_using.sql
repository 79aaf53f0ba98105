--: verdict: rewrite
SELECT id FROM booking ORDER BY placed_at USING <, id USING OPERATOR(pg_catalog.>) LIMIT :limit
