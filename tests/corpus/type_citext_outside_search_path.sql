--: The key's own operator is not found by its name.
--: verdict: rewrite
--: session: SET search_path = api
SELECT k.id, k.c FROM public.kind k ORDER BY k.c, k.id LIMIT :limit
