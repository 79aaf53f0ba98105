--: verdict: rewrite
SELECT id, title FROM booking ORDER BY title COLLATE "C" DESC, note COLLATE "POSIX" LIMIT :limit
