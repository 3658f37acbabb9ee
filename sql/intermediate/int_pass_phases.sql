-- The phase of every pass and whether it anchors a round.
-- Grain: one row per pass (pass_id)
-- Needs: int_pass_roles, int_round_order
-- Kept: table
-- Columns:
--   pass_id BIGINT  the pass
--   rank INTEGER  process driving one GPU
--   first_activity_id BIGINT  first activity of the pass
--   role VARCHAR  target, draft or prefill
--   phase VARCHAR  verify, draft, draft_extend or prefill
--   is_anchor BOOLEAN  a round starts here
--   ends_cut BOOLEAN  the recording ended inside this pass
WITH ordered AS (
  SELECT
    *,
    last_value(CASE WHEN role <> 'draft' THEN role END IGNORE NULLS) OVER (
      PARTITION BY rank ORDER BY pass_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS latest_model_role,
  FROM int_pass_roles
),
phases AS (
  SELECT
    passes.pass_id,
    passes.rank,
    passes.first_activity_id,
    passes.role,
    passes.after,
    passes.range_phase,
    passes.is_cut,
    passes.ends_cut,
    orders.draft_order,
    CASE
      WHEN passes.role = 'target' THEN 'verify'
      WHEN passes.role = 'prefill' OR passes.after = 'prefill' THEN 'prefill'
      -- an engine that verifies first drafts after a prompt as after a verification
      WHEN orders.draft_order = 'verify_first' AND passes.latest_model_role = 'prefill'
        THEN 'prefill'
      WHEN orders.draft_order <> 'extend_draft' THEN 'draft'
      WHEN passes.range_phase IN ('draft', 'draft_extend') THEN passes.range_phase
      WHEN passes.after = 'target' THEN 'draft_extend'
      ELSE 'draft'
    END AS phase,
  FROM ordered AS passes
  JOIN int_round_order AS orders USING (rank)
),
-- With one draft pass a round, an engine that extends has no draft left to open a round with.
openers AS (
  SELECT rank, count(*) FILTER (WHERE phase = 'draft') AS drafts
  FROM phases
  GROUP BY rank
)
SELECT
  pass_id,
  rank,
  first_activity_id,
  role,
  phase,
  CASE
    WHEN is_cut THEN FALSE
    WHEN draft_order IN ('plain', 'verify_first') OR openers.drafts = 0 THEN phase = 'verify'
    ELSE phase = 'draft'
      AND lag(phase) OVER (PARTITION BY rank ORDER BY pass_id) IS DISTINCT FROM 'draft'
  END AS is_anchor,
  ends_cut,
FROM phases
JOIN openers USING (rank)
