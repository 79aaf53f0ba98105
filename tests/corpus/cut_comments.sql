--: Comments and hints in every gap.
--: verdict: rewrite
--: ties: SELECT id FROM booking ORDER BY placed_at DESC, note
SELECT /*+ IndexScan(b) */ id -- the id
FROM booking /* b */ b
ORDER BY /* newest */ placed_at DESC -- ties
, note LIMIT /* n */ :limit
