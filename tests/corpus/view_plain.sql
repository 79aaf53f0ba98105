--: verdict: rewrite
SELECT id, note FROM recent ORDER BY note DESC LIMIT :limit OFFSET :offset
