--: The order's collation holds equal what the unique key tells apart.
--: verdict: rewrite
SELECT id, i18n FROM kind ORDER BY i18n, v COLLATE ci DESC LIMIT :limit
