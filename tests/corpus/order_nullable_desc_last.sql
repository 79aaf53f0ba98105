--: verdict: rewrite
SELECT id, note FROM booking ORDER BY note DESC NULLS LAST LIMIT :limit OFFSET :offset
