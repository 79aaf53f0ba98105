--: verdict: rewrite
SELECT DISTINCT v.* FROM venue v JOIN booking b ON b.venue_id = v.id ORDER BY v.rank DESC LIMIT :limit
