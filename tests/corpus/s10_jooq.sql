--: jOOQ: everything quoted and qualified.
--: verdict: rewrite
--: params: :offset, :limit
select "public"."booking"."id", "public"."booking"."note" from "public"."booking" order by "public"."booking"."placed_at" desc, "public"."booking"."id" desc offset $1 rows fetch next $2 rows only
