--: Hasura: the page is two levels down, and one row of JSON comes back.
--: verdict: rewrite
--: inner: SELECT FROM booking
--: reference: SELECT coalesce(json_agg(row_to_json(b)), '[]') FROM (SELECT * FROM booking ORDER BY placed_at DESC, id DESC LIMIT :limit OFFSET :offset) b
--: collect: 1
SELECT coalesce(json_agg("root" ORDER BY "root.pg.placed_at" DESC NULLS FIRST), '[]') AS "root" FROM (SELECT row_to_json("_root.base") AS "root", "_root.base"."placed_at" AS "root.pg.placed_at" FROM (SELECT * FROM "public"."booking" WHERE ('true') ORDER BY "placed_at" DESC NULLS FIRST LIMIT :limit OFFSET :offset) AS "_root.base" ORDER BY "root.pg.placed_at" DESC NULLS FIRST) AS "_root"
