--: verdict: rewrite
--: params: :limit, :offset
SELECT venue_id, note, count(*) FROM booking GROUP BY venue_id, note ORDER BY venue_id, note DESC LIMIT $1 OFFSET $2
