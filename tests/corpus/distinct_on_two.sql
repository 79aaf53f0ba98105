--: verdict: rewrite
SELECT DISTINCT ON (note, venue_id) note, id FROM booking ORDER BY venue_id, note DESC, id LIMIT :limit OFFSET :offset
