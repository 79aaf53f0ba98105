--: verdict: pass grouping_sets
SELECT venue_id, title FROM booking GROUP BY GROUPING SETS ((venue_id), (title)) ORDER BY 1, 2 LIMIT :limit
