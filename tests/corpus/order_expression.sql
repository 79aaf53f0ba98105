--: verdict: rewrite
SELECT id FROM booking ORDER BY lower(note), -id LIMIT :limit OFFSET :offset
