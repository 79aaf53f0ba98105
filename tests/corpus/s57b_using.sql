--: The same order with a fixed number of rows.
--: verdict: rewrite
SELECT * FROM booking ORDER BY placed_at USING >, id FETCH FIRST :limit ROWS ONLY
