--: verdict: rewrite
SELECT id, note FROM booking ORDER BY note DESC LIMIT :limit
