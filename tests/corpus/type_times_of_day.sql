--: verdict: rewrite
SELECT id FROM kind ORDER BY tm, tz DESC LIMIT :limit
