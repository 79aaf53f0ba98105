--: A statement that is a keyset by its own predicate, on a nullable column with its OR.
--: verdict: pass already_keyset
--: params: '2026-01-01 00:03:00+00', 9, :limit
SELECT id FROM booking WHERE (placed_at, id) > ($1, $2) AND venue_id = 7 ORDER BY placed_at, id LIMIT $3
