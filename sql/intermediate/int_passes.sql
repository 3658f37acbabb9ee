-- Forward passes of the target or of a draft model, in order of execution.
-- A pass is a segment with a layer or a GEMM. Eager GEMMs without a layer (an lm_head that is
-- launched outside the graph) are no pass: they belong to the pass before them.
-- Grain: one row per pass (pass_id)
-- Needs: int_activities, int_segments
-- Kept: table
-- Columns:
--   pass_id BIGINT  its first activity: unique and in order
--   rank INTEGER  process driving one GPU
--   replay_id BIGINT  whole replay that holds it; 0 when eager or piecewise
--   segment BIGINT  segment of the lane
--   first_activity_id BIGINT  first activity of the forward pass itself
--   layers BIGINT  layers that ran: attention plus recurrent mixers
--   gemms BIGINT  weight-reading kernels
--   is_chunked BOOLEAN  used the chunked recurrent kernels of a prompt
--   range_phase VARCHAR  phase that ranges state for most of its activities
WITH members AS (
  SELECT
    s.rank,
    s.replay_id,
    s.segment,
    a.activity_id,
    a.category,
    s.mark,
    s.range_phase,
    a.category = 'attention' AND is_layer_kernel(a.category, a.subcategory) AS is_attention,
    a.category = 'gdn' AND is_layer_kernel(a.category, a.subcategory) AS is_recurrent,
    a.category = 'gdn' AND a.subcategory = 'conv' AS is_convolution,
    a.category = 'gdn' AND starts_with(a.subcategory, 'chunk') AS is_chunked,
  FROM int_segments AS s
  JOIN int_activities AS a USING (activity_id)
),
segments AS (
  SELECT
    rank,
    replay_id,
    segment,
    -- what precedes the embedding or first layer of an eager pass is preparation
    CASE
      WHEN replay_id > 0 THEN min(activity_id)
      WHEN min(activity_id) FILTER (WHERE mark = 'embedding')
        < min(activity_id) FILTER (WHERE mark = 'gemm')
        THEN min(activity_id) FILTER (WHERE mark = 'embedding')
      ELSE min(activity_id) FILTER (
        WHERE category IN ('norm', 'gemm') OR is_attention OR is_recurrent OR is_convolution
      )
    END AS first_activity_id,
    bool_or(mark = 'embedding') AS has_embedding,
    count(*) FILTER (WHERE is_attention) + greatest(
      count(*) FILTER (WHERE is_recurrent), count(*) FILTER (WHERE is_convolution)
    ) AS layers,
    count(*) FILTER (WHERE mark = 'gemm') AS gemms,
    bool_or(is_chunked) AS is_chunked,
    mode(range_phase ORDER BY range_phase) AS range_phase,
  FROM members
  GROUP BY rank, replay_id, segment
)
SELECT
  -- numbered by position in the capture, so that the order is total
  first_activity_id AS pass_id,
  rank,
  replay_id,
  segment,
  first_activity_id,
  layers,
  gemms,
  is_chunked,
  range_phase,
FROM segments
QUALIFY
  layers > 0
  OR (gemms > 0 AND (
    replay_id > 0 OR has_embedding OR max(layers) OVER (PARTITION BY rank) = 0
  ))
