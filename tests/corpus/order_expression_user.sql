--: verdict: rewrite
SELECT id FROM booking ORDER BY folded(title), noted(note) DESC LIMIT :limit
