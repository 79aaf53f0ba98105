--: Literals end where the lexer cannot see it.
--: verdict: pass strings
--: session: SET standard_conforming_strings = off; SET escape_string_warning = off
SELECT id FROM booking WHERE title <> 'it''s' ORDER BY id LIMIT :limit
