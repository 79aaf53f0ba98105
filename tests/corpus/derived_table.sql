--: verdict: rewrite
SELECT q.id, q.loud FROM (SELECT id, upper(note) AS loud, placed_at FROM booking WHERE venue_id = 7) q ORDER BY q.loud, q.placed_at DESC LIMIT :limit OFFSET :offset
