-- Per rank: what rounds may rest on, or why there are none. Ranges suffice alone. Graphs and bare
-- kernels must show a model that decodes: layers, passes with embedding or sampling between, and
-- nothing that only training runs.
-- Grain: one row per rank (rank)
-- Needs: int_pass_roles, int_activities, stg_kernel_names
-- Kept: table
-- Columns:
--   rank INTEGER  process driving one GPU
--   evidence VARCHAR  ranges, graphs or kernels; NULL when no rounds can be told
--   refused_because VARCHAR  why not; NULL when rounds can be told
WITH ranks AS (
  SELECT
    a.rank,
    count(*) FILTER (WHERE is_training_kernel(n.normal_name)) AS training_kernels,
    count(*) FILTER (WHERE a.category IN ('sampling', 'spec', 'embedding')) AS breaks,
    count(*) FILTER (WHERE a.kind = 'kernel') AS kernels,
    count(*) FILTER (WHERE a.kind = 'graph_span') AS spans,
  FROM int_activities AS a
  LEFT JOIN stg_kernel_names AS n USING (name_id)
  GROUP BY a.rank
),
targets AS (
  SELECT
    rank,
    count(*) AS passes,
    max(layers) AS layers,
    count(*) FILTER (WHERE range_phase IS NOT NULL) AS with_range,
    count(*) FILTER (WHERE replay_id > 0) AS with_graph,
  FROM int_pass_roles
  WHERE role = 'target'
  GROUP BY rank
),
judged AS (
  SELECT
    ranks.rank,
    CASE
      WHEN 2 * targets.with_range > targets.passes THEN 'ranges'
      WHEN 2 * targets.with_graph > targets.passes THEN 'graphs'
      ELSE 'kernels'
    END AS evidence,
    CASE
      WHEN ranks.spans > 0 THEN 'graph-level capture: the kernels of graphs are hidden'
      WHEN ranks.kernels = 0 THEN 'no kernels'
      WHEN ranks.training_kernels > 0 THEN 'training kernels: this is no decode capture'
      WHEN targets.passes IS NULL THEN 'no forward pass of a model found'
      WHEN targets.passes < 2 THEN 'a single target pass: no round is complete'
      WHEN 2 * targets.with_range > targets.passes THEN NULL
      WHEN targets.layers = 0 THEN 'no attention or recurrent kernels and no ranges'
      WHEN ranks.breaks = 0 AND 2 * targets.with_graph <= targets.passes
        THEN 'no graphs, no ranges, and neither embedding nor sampling kernels'
    END AS refused_because,
  FROM ranks
  LEFT JOIN targets USING (rank)
)
SELECT
  rank,
  if(refused_because IS NULL, evidence, NULL) AS evidence,
  refused_because,
FROM judged
