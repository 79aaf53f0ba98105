--: verdict: rewrite
SELECT id, venue_id, rank() OVER (PARTITION BY venue_id ORDER BY placed_at) FROM booking ORDER BY venue_id DESC, id LIMIT :limit
