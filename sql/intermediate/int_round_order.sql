-- In which order the engine of each rank drafts and verifies, and what shows it.
-- Grain: one row per rank (rank)
-- Needs: int_pass_roles, int_activities
-- Kept: table
-- Columns:
--   rank INTEGER  process driving one GPU
--   draft_order VARCHAR  plain, verify_first, draft_first, or extend_draft (SGLang: after each verification one pass extends the draft, the other passes open the next round)
--   shown_by VARCHAR  the evidence
WITH passes AS (
  SELECT
    rank,
    count(*) FILTER (WHERE role = 'draft') AS drafts,
    count(*) FILTER (WHERE role = 'target') AS targets,
    count(*) FILTER (WHERE range_phase = 'draft_extend') AS stated_extends,
  FROM int_pass_roles
  GROUP BY rank
),
kernels AS (
  SELECT
    rank,
    count(*) FILTER (WHERE category = 'spec' AND subcategory = 'tree_build') AS tree_builds,
    count(*) FILTER (WHERE category = 'spec' AND subcategory = 'rejection') AS rejections,
    count(*) FILTER (WHERE starts_with(subcategory, 'ggml')) AS ggml,
  FROM int_activities
  GROUP BY rank
),
drafts AS (
  SELECT
    rank,
    after,
    (replay_id > 0 AND replay_id = lead(replay_id) OVER line)
    OR (replay_id > 0 AND replay_id = lag(replay_id) OVER line) AS shares_replay,
    range_phase IS NOT NULL AS has_range,
  FROM int_pass_roles
  WINDOW line AS (PARTITION BY rank ORDER BY pass_id)
  QUALIFY role = 'draft'
),
-- The draft after a verification stands apart when the others share a graph or a range with each
-- other and it does not.
apart AS (
  SELECT
    rank,
    bool_and(NOT shares_replay) FILTER (WHERE after = 'target')
    AND bool_and(shares_replay) FILTER (WHERE after = 'draft') AS by_graph,
    bool_and(NOT has_range) FILTER (WHERE after = 'target')
    AND bool_and(has_range) FILTER (WHERE after = 'draft') AS by_range,
  FROM drafts
  GROUP BY rank
)
SELECT
  passes.rank,
  CASE
    WHEN passes.drafts = 0 OR passes.targets = 0 THEN 'plain'
    WHEN passes.stated_extends > 0 OR kernels.tree_builds > 0 THEN 'extend_draft'
    WHEN kernels.rejections > 0 THEN 'verify_first'
    WHEN kernels.ggml > 0 THEN 'draft_first'
    WHEN apart.by_range OR apart.by_graph THEN 'extend_draft'
    ELSE 'verify_first'
  END AS draft_order,
  CASE
    WHEN passes.drafts = 0 OR passes.targets = 0 THEN 'no draft passes'
    WHEN passes.stated_extends > 0 THEN 'draft_extend ranges'
    WHEN kernels.tree_builds > 0 THEN 'tree-build kernels'
    WHEN kernels.rejections > 0 THEN 'rejection-sampler kernels'
    WHEN kernels.ggml > 0 THEN 'ggml kernels'
    WHEN apart.by_range THEN 'a draft pass outside the draft ranges'
    WHEN apart.by_graph THEN 'a draft pass outside the draft graph'
    ELSE 'nothing: the common order is assumed'
  END AS shown_by,
FROM passes
JOIN kernels USING (rank)
LEFT JOIN apart USING (rank)
