--: verdict: rewrite
SELECT * FROM (SELECT DISTINCT venue_id, note FROM booking) q ORDER BY note LIMIT :limit
