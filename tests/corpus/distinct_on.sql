--: verdict: rewrite
SELECT DISTINCT ON (venue_id) venue_id, id, placed_at FROM booking ORDER BY venue_id DESC, placed_at DESC, id LIMIT :limit
