--: FETCH ... WITH TIES has no fixed number of rows.
--: verdict: pass with_ties
SELECT * FROM booking ORDER BY placed_at USING >, id FETCH FIRST 10 ROWS WITH TIES
