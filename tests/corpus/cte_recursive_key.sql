--: verdict: rewrite
--: options: key='id, depth'
WITH RECURSIVE tree AS (SELECT id, parent_id, 1 AS depth FROM booking WHERE parent_id IS NULL UNION ALL SELECT b.id, b.parent_id, t.depth + 1 FROM booking b JOIN tree t ON t.id = b.parent_id WHERE t.depth < 4) SELECT id, depth FROM tree ORDER BY depth DESC LIMIT :limit
