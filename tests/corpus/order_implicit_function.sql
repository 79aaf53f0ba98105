--: verdict: rewrite
SELECT lower(note), id FROM booking ORDER BY lower LIMIT :limit
