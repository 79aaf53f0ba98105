--: Names with quotes, blanks, keywords, of 63 bytes, and not ASCII.
--: verdict: rewrite
--: setup: CREATE TABLE "Odd ""table" ("select" int4 PRIMARY KEY, "a b" text, "größe" int4, "x23456789012345678901234567890123456789012345678901234567890123" int4 NOT NULL);
--: setup: INSERT INTO "Odd ""table" SELECT i, nullif('v' || i % 3, 'v1'), nullif(i % 4, 0), i % 2 FROM generate_series(1, 25) i;
SELECT "o""o"."a b" AS "order", "größe" FROM "Odd ""table" AS "o""o" ORDER BY "order" DESC, "größe", "x23456789012345678901234567890123456789012345678901234567890123" DESC LIMIT :limit
