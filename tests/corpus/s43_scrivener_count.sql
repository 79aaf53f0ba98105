--: Ecto's aggregate and Scrivener's count.
--: verdict: pass no_order
SELECT count('*') FROM (SELECT sb0."id" AS "id" FROM "bookings" AS sb0) AS s0
