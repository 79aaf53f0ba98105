--: verdict: rewrite
TABLE booking ORDER BY note, id LIMIT :limit
