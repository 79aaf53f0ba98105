--: verdict: rewrite
SELECT DISTINCT venue_id, note FROM booking ORDER BY note DESC LIMIT :limit OFFSET :offset
