--: verdict: rewrite
SELECT v.city, w.city FROM venue v CROSS JOIN venue w ORDER BY w.rank, v.rank DESC LIMIT :limit
