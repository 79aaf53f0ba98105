--: Doctrine's Paginator, by a nullable column and the id in another direction.
--: verdict: rewrite
SELECT DISTINCT id_0, note_1 FROM (SELECT b0_.id AS id_0, b0_.note AS note_1, s1_.id AS id_2 FROM booking b0_ LEFT JOIN seat s1_ ON s1_.booking_id = b0_.id) dctrn_result ORDER BY note_1 ASC, id_0 DESC LIMIT :limit OFFSET :offset
