--: No page ends, so no cursor follows.
--: verdict: whole
SELECT id FROM booking ORDER BY id LIMIT NULL
