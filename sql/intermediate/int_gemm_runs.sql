-- Weight-reading GEMMs of each pass in order, grouped into runs between two landmarks: a mixer
-- (attention or recurrent), the activation of an MLP, or an end of the pass. Between the
-- activation of one layer and the mixer of the next, say, lie the down projection and the input
-- projections. An activation without a GEMM since the mixer is an output gate, no landmark.
-- Grain: one row per GEMM (activity_id)
-- Needs: int_activities, int_activity_phases, int_pass_phases, stg_kernel_names
-- Kept: table
-- Columns:
--   activity_id BIGINT  the GEMM
--   pass_id BIGINT  forward pass
--   role VARCHAR  target, draft or prefill
--   before VARCHAR  landmark before the run: start, attention, latent, recurrent, activation or routing
--   after VARCHAR  landmark after the run: attention, latent, recurrent, activation, routing or end
--   position BIGINT  1, 2 … in the run; a kernel that finishes a split GEMM shares its position
--   run_length BIGINT  GEMMs in the run
--   subcategory VARCHAR  finer kind of the kernel
--   layer BIGINT  mixers of the pass that started before it
--   has_experts BOOLEAN  the pass routes tokens to experts
WITH tokens AS (
  SELECT
    a.activity_id,
    p.latest_pass_id AS pass_id,
    passes.role,
    a.subcategory,
    CASE
      WHEN a.category = 'gemm' AND is_gemm_finish(a.subcategory) THEN 'finish'
      WHEN a.category = 'gemm' THEN 'gemm'
      WHEN a.category = 'attention' AND contains(n.normal_name, 'mla') THEN 'latent'
      WHEN a.category = 'attention' THEN 'attention'
      WHEN a.category = 'gdn' THEN 'recurrent'
      WHEN a.category = 'activation' THEN 'activation'
      WHEN a.category = 'moe_routing' THEN 'routing'
    END AS token,
  FROM int_activities AS a
  JOIN int_activity_phases AS p USING (activity_id)
  LEFT JOIN stg_kernel_names AS n USING (name_id)
  JOIN int_pass_phases AS passes ON passes.pass_id = p.latest_pass_id AND passes.phase = p.phase
  WHERE
    a.category = 'gemm'
    OR is_layer_kernel(a.category, a.subcategory)
    OR (a.category = 'gdn' AND regexp_matches(a.subcategory, '^(conv|chunk)'))
    OR a.category IN ('activation', 'moe_routing')
),
followed AS (
  SELECT
    *,
    last_value(CASE WHEN token <> 'finish' THEN token END IGNORE NULLS) OVER (
      PARTITION BY pass_id ORDER BY activity_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS previous_token,
  FROM tokens
),
landmarks AS (
  SELECT
    *,
    token NOT IN ('gemm', 'finish') AND NOT (
      token = 'activation'
      AND coalesce(previous_token, '') IN ('attention', 'latent', 'recurrent')
    ) AS is_landmark,
  FROM followed
),
numbered AS (
  SELECT
    *,
    count(*) FILTER (WHERE is_landmark) OVER line AS run,
    count(*) FILTER (
      WHERE is_landmark AND token IN ('attention', 'latent', 'recurrent')
      AND previous_token IS DISTINCT FROM token
    ) OVER line AS layer,
    last_value(CASE WHEN is_landmark THEN token END IGNORE NULLS) OVER line AS before,
    first_value(CASE WHEN is_landmark THEN token END IGNORE NULLS) OVER (
      PARTITION BY pass_id ORDER BY activity_id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
    ) AS after,
    bool_or(token = 'routing') OVER (PARTITION BY pass_id) AS has_experts,
  FROM landmarks
  WINDOW line AS (
    PARTITION BY pass_id ORDER BY activity_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  )
)
SELECT
  activity_id,
  pass_id,
  role,
  coalesce(before, 'start') AS before,
  coalesce(after, 'end') AS after,
  count(*) FILTER (WHERE token = 'gemm') OVER (
    PARTITION BY pass_id, run ORDER BY activity_id
  ) AS position,
  count(*) FILTER (WHERE token = 'gemm') OVER (PARTITION BY pass_id, run) AS run_length,
  subcategory,
  layer,
  has_experts,
FROM numbered
WHERE token IN ('gemm', 'finish')
