--: The top rows of each group, by a row number that is only a filter.
--: verdict: rewrite
SELECT q.id, q.venue_id FROM (SELECT id, venue_id, note, row_number() OVER (PARTITION BY venue_id ORDER BY placed_at, id) AS n FROM booking) q WHERE q.n <= 6 ORDER BY q.venue_id, q.note DESC, q.id LIMIT :limit
