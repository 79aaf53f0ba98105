--: verdict: rewrite
(SELECT venue_id FROM booking) UNION (SELECT id FROM venue) UNION (SELECT seat_no FROM seat) ORDER BY venue_id LIMIT :limit OFFSET :offset
