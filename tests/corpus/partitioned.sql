--: verdict: rewrite
SELECT at, id FROM event ORDER BY at DESC LIMIT :limit OFFSET :offset
