--: EXCEPT, ordered by the first arm's alias.
--: verdict: rewrite
SELECT id AS "booking id", note FROM booking EXCEPT SELECT booking_id, NULL FROM seat ORDER BY "booking id" DESC LIMIT :limit OFFSET :offset
