--: verdict: rewrite
SELECT k, v FROM loose WHERE k IS NOT NULL ORDER BY v DESC LIMIT :limit
