--: A range on the sort key without a tie-break is a filter: the page goes on within it.
--: verdict: rewrite
--: params: '2026-01-01 00:03:00+00', :limit
SELECT id FROM booking WHERE placed_at < $1 ORDER BY placed_at DESC LIMIT $2
