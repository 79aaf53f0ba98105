--: verdict: rewrite
SELECT b.id, p.note FROM booking b LEFT JOIN booking p ON p.id = b.parent_id ORDER BY p.note, b.placed_at LIMIT :limit
