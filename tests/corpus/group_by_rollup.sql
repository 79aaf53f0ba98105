--: verdict: pass grouping_sets
SELECT venue_id, count(*) FROM booking GROUP BY ROLLUP (venue_id) ORDER BY venue_id LIMIT :limit
