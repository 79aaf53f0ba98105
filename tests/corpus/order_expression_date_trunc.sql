--: A stable expression: it depends on the session's time zone.
--: verdict: rewrite
SELECT id FROM booking ORDER BY date_trunc('day', placed_at) DESC, id LIMIT :limit
