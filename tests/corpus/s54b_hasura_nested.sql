--: Hasura with a nested array: a lateral sub-select beside the page's level.
--: verdict: rewrite
--: inner: SELECT FROM booking
--: reference: SELECT coalesce(json_agg(json_build_object('id', b.id, 'seats', (SELECT coalesce(json_agg(s.id ORDER BY s.id), '[]') FROM seat s WHERE s.booking_id = b.id))), '[]') FROM (SELECT * FROM booking ORDER BY note NULLS LAST, id LIMIT :limit OFFSET :offset) b
--: collect: 1
SELECT coalesce(json_agg("root" ORDER BY "root.pg.note" ASC NULLS LAST, "root.pg.id" ASC NULLS LAST), '[]') AS "root" FROM (SELECT json_build_object('id', "_root.base"."id", 'seats', "_root.ar"."seats") AS "root", "_root.base"."note" AS "root.pg.note", "_root.base"."id" AS "root.pg.id" FROM (SELECT * FROM "public"."booking" WHERE ('true') ORDER BY "note" ASC NULLS LAST, "id" ASC NULLS LAST LIMIT :limit OFFSET :offset) AS "_root.base" LEFT OUTER JOIN LATERAL (SELECT coalesce(json_agg("seat"."id" ORDER BY "seat"."id"), '[]') AS "seats" FROM "public"."seat" AS "seat" WHERE "seat"."booking_id" = "_root.base"."id") AS "_root.ar" ON ('true') ORDER BY "root.pg.note" ASC NULLS LAST, "root.pg.id" ASC NULLS LAST) AS "_root"
