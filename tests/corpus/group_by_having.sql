--: verdict: rewrite
--: params: 1, :limit
SELECT note, venue_id FROM booking GROUP BY note, venue_id HAVING count(*) > $1 OR note IS NULL ORDER BY sum(amount) DESC, note LIMIT $2
