--: jOOQ's seek() is a keyset already.
--: verdict: pass already_keyset
--: params: '2026-01-01 00:03:00+00', 20, :limit
select "public"."booking"."id" from "public"."booking" where ("public"."booking"."placed_at", "public"."booking"."id") < (cast($1 as timestamp(6) with time zone), $2) order by "public"."booking"."placed_at" desc, "public"."booking"."id" desc fetch next $3 rows only
