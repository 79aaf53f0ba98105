--: verdict: rewrite
SELECT DISTINCT count(*) AS n, venue_id FROM booking GROUP BY venue_id, note ORDER BY n DESC LIMIT :limit
