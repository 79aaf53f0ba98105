--: The alias is another thing than the column of its name.
--: verdict: rewrite
SELECT -id AS id, note FROM booking ORDER BY note, id LIMIT :limit OFFSET :offset
