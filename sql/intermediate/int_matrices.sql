-- Which weight matrix a GEMM reads, from its place in the layer pattern. The first of a run
-- finishes what the landmark before it began, the last ones prepare the landmark after it.
-- Grain: one row per GEMM (activity_id)
-- Needs: int_gemm_runs
-- Kept: table
-- Columns:
--   activity_id BIGINT  the GEMM
--   pass_id BIGINT  forward pass
--   layer BIGINT  0, 1 … in the pass; NULL for matrices outside layers
--   matrix VARCHAR  qkv, o, gate_up, down, in_proj_qkvz, in_proj_ba, gdn_out, fc, router, experts, shared_gate_up, shared_down or lm_head; NULL when its place tells nothing
WITH placed AS (
  SELECT
    *,
    before NOT IN ('start', 'routing') AND position = 1 AS finishes,
    position - if(before IN ('start', 'routing'), 0, 1) AS preparing,
    run_length - if(before IN ('start', 'routing'), 0, 1) AS preparers,
  FROM int_gemm_runs
),
labelled AS (
  SELECT
    *,
    CASE
      WHEN subcategory = 'router' THEN 'router'
      WHEN regexp_matches(coalesce(subcategory, ''), 'moe|grouped') THEN 'experts'
      WHEN finishes AND before = 'attention' THEN 'o'
      WHEN finishes AND before = 'recurrent' THEN 'gdn_out'
      WHEN finishes AND before = 'activation' THEN if(has_experts, 'shared_down', 'down')
      WHEN after = 'end' AND position = run_length THEN 'lm_head'
      WHEN before = 'start' AND role = 'draft' AND position = 1 AND run_length > 1 THEN 'fc'
      WHEN after = 'attention' THEN 'qkv'
      WHEN after = 'recurrent' AND preparing = preparers AND preparers > 1 THEN 'in_proj_ba'
      WHEN after = 'recurrent' THEN 'in_proj_qkvz'
      WHEN after = 'activation' THEN if(has_experts, 'shared_gate_up', 'gate_up')
      WHEN after = 'routing' THEN 'router'
    END AS matrix,
  FROM placed
)
SELECT
  activity_id,
  pass_id,
  CASE
    WHEN matrix IN ('lm_head', 'fc') THEN NULL
    WHEN matrix IN ('qkv', 'in_proj_qkvz', 'in_proj_ba') THEN layer
    ELSE layer - 1
  END AS layer,
  matrix,
FROM labelled
