--: A search with an array, a pattern and a JSON operator.
--: verdict: rewrite
--: params: '{3,7}', '%1%', :limit, :offset
SELECT id, title FROM booking WHERE venue_id = ANY ($1::int4[]) AND (title ILIKE $2 OR to_jsonb(booking) ? 'note') ORDER BY title DESC, amount LIMIT $3 OFFSET $4
