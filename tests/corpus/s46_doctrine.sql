--: Doctrine's Paginator: distinct ids over a derived table.
--: verdict: rewrite
SELECT DISTINCT id_0, placed_1 FROM (SELECT b0_.id AS id_0, b0_.placed_at AS placed_1, s1_.id AS id_2 FROM booking b0_ INNER JOIN seat s1_ ON s1_.booking_id = b0_.id) dctrn_result ORDER BY placed_1 DESC LIMIT :limit OFFSET :offset
