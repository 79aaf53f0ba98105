--: PostgREST without an upper bound: the page is the whole result, and no cursor follows.
--: verdict: whole
--: params: :offset
SELECT "api"."booking".* FROM "api"."booking" ORDER BY "api"."booking"."placed_at" DESC LIMIT ALL OFFSET $1
