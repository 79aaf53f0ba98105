--: verdict: pass into
SELECT id INTO TEMP copied FROM booking ORDER BY id LIMIT 3
