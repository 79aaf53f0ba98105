--: verdict: rewrite
SELECT id, body FROM event ORDER BY body, at DESC, id LIMIT :limit
