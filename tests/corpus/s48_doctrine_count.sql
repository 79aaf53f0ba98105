--: Doctrine's count.
--: verdict: pass no_order
SELECT COUNT(*) AS dctrn_count FROM (SELECT DISTINCT id_0 FROM (SELECT b0_.id AS id_0 FROM booking b0_) dctrn_result) dctrn_table
