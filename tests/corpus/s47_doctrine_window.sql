--: Doctrine's Paginator with an order by a joined column: a row number is the key.
--: verdict: pass window_key
SELECT DISTINCT id_0, MIN(sclr_3) AS dctrn_minrownum FROM (SELECT b0_.id AS id_0, ROW_NUMBER() OVER(ORDER BY b0_.placed_at DESC, b0_.id) AS sclr_3 FROM booking b0_) dctrn_result GROUP BY id_0 ORDER BY dctrn_minrownum ASC LIMIT :limit OFFSET :offset
