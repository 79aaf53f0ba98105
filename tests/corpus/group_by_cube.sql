--: verdict: pass grouping_sets
SELECT venue_id, title, count(*) FROM booking GROUP BY CUBE (venue_id, title) ORDER BY 1, 2 LIMIT :limit
