--: verdict: rewrite
SELECT ROW(id, note), NULL, 'text' FROM booking ORDER BY note DESC, id LIMIT :limit
