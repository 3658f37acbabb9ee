-- The round of every pass and, for draft passes, their step in it.
-- Grain: one row per pass (pass_id)
-- Needs: int_pass_phases
-- Columns:
--   pass_id BIGINT  the pass
--   draft_step INTEGER  1, 2 … in order of execution; NULL for other passes
WITH rounds AS (
  SELECT
    *,
    count(*) FILTER (WHERE is_anchor) OVER (PARTITION BY rank ORDER BY pass_id) AS round_number,
    phase IN ('draft', 'draft_extend') AS is_draft,
  FROM int_pass_phases
)
SELECT
  pass_id,
  if(is_draft, row_number() OVER (PARTITION BY rank, round_number, is_draft ORDER BY pass_id), NULL)
    ::INTEGER AS draft_step,
FROM rounds
