--: verdict: rewrite
WITH mine(number, remark) AS (SELECT id, note FROM booking) SELECT remark, number FROM mine ORDER BY remark LIMIT :limit
