--: SeaORM's paginator.
--: verdict: rewrite
--: params: :limit, :offset
SELECT "booking"."id", "booking"."note" FROM "booking" ORDER BY "booking"."note" ASC NULLS FIRST, "booking"."id" ASC LIMIT $1 OFFSET $2
