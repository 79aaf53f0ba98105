--: verdict: pass tablesample
SELECT id FROM booking TABLESAMPLE system (100) ORDER BY id LIMIT :limit
