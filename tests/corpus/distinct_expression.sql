--: verdict: rewrite
SELECT DISTINCT upper(note) AS loud, venue_id % 2 FROM booking ORDER BY loud LIMIT :limit
