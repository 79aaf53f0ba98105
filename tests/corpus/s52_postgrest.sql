--: PostgREST: the page is a CTE, and one row of JSON comes back.
--: verdict: rewrite
--: params: :limit, :offset
--: inner: SELECT FROM api.booking
--: reference: SELECT null::bigint, (SELECT count(*) FROM api.booking), coalesce(json_agg(t), '[]') FROM (SELECT * FROM api.booking ORDER BY placed_at DESC, id DESC LIMIT :limit OFFSET :offset) t
--: collect: 3
WITH pgrst_source AS ( SELECT "api"."booking".* FROM "api"."booking"  ORDER BY "api"."booking"."placed_at" DESC  LIMIT $1 OFFSET $2 )  SELECT null::bigint AS total_result_set, pg_catalog.count(_postgrest_t) AS page_total, coalesce(json_agg(_postgrest_t), '[]') AS body FROM ( SELECT * FROM pgrst_source ) _postgrest_t
