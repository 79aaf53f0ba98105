--: At most one row is found on the right: the left key is enough.
--: verdict: rewrite
SELECT b.id, v.city FROM booking b LEFT JOIN venue v ON v.id = b.venue_id AND v.rank = 1 ORDER BY v.city, b.placed_at DESC LIMIT :limit
