--: PostgREST with an embedded collection and a nullable order.
--: verdict: rewrite
--: params: :limit, :offset
--: inner: SELECT FROM booking
--: reference: SELECT coalesce(json_agg(t), '[]') FROM (SELECT b.id, b.note, (SELECT coalesce(json_agg(s.id ORDER BY s.id), '[]') FROM seat s WHERE s.booking_id = b.id) AS seats FROM booking b ORDER BY b.note ASC NULLS FIRST, b.id DESC LIMIT :limit OFFSET :offset) t
--: collect: 1
WITH pgrst_source AS ( SELECT "public"."booking"."id", "public"."booking"."note", COALESCE( "booking_seat_1"."booking_seat_1", '[]') AS "seats" FROM "public"."booking" LEFT JOIN LATERAL ( SELECT json_agg("booking_seat_1"."id" ORDER BY "booking_seat_1"."id") AS "booking_seat_1" FROM (SELECT "seat_1"."id" FROM "public"."seat" AS "seat_1" WHERE "seat_1"."booking_id" = "public"."booking"."id" ) AS "booking_seat_1" ) AS "booking_seat_1" ON TRUE ORDER BY "public"."booking"."note" ASC NULLS FIRST, "public"."booking"."id" DESC LIMIT $1 OFFSET $2 ) SELECT coalesce(json_agg(_postgrest_t), '[]') AS body FROM ( SELECT * FROM pgrst_source ) _postgrest_t
