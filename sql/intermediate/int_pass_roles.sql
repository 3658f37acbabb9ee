-- The role of every pass: target, draft or prefill, by ranges where they speak, else by layers.
-- The target is what has (nearly) the most layers; a prompt shows chunked recurrent kernels, or
-- runs outside the whole graphs in which the rank's other target passes run. A capture cuts its
-- first and last pass: what has more layers than a draft there is a target that was cut, and so is
-- the last pass when a target is due. One that lost records is nearer to the target than to a draft.
-- Grain: one row per pass (pass_id)
-- Needs: int_passes
-- Kept: table
-- Columns:
--   pass_id BIGINT  the pass
--   rank INTEGER  process driving one GPU
--   replay_id BIGINT  whole replay that holds it; 0 when eager or piecewise
--   first_activity_id BIGINT  first activity of the pass
--   role VARCHAR  target, draft or prefill
--   after VARCHAR  role of the pass before it on the rank; NULL for the first
--   gemms BIGINT  weight-reading kernels
--   layers BIGINT  layers that ran
--   range_phase VARCHAR  phase that ranges state
--   is_cut BOOLEAN  the recording began inside this pass
--   ends_cut BOOLEAN  the recording ended inside this pass
WITH sizes AS (
  SELECT
    rank,
    max(layers) AS layers,
    max(gemms) AS gemms,
    count(*) FILTER (WHERE range_phase = 'verify') AS stated_targets,
  FROM int_passes
  GROUP BY rank
),
sized AS (
  SELECT
    int_passes.*,
    CASE
      WHEN range_phase IN ('verify', 'prefill') THEN TRUE
      WHEN range_phase IN ('draft', 'draft_extend') THEN FALSE
      WHEN sizes.layers > 0 THEN 10 * int_passes.layers >= 9 * sizes.layers
      WHEN sizes.stated_targets > 0 THEN FALSE
      ELSE 2 * int_passes.gemms >= sizes.gemms
    END AS is_large,
    pass_id = min(pass_id) OVER (PARTITION BY rank) AS is_first,
    pass_id = max(pass_id) OVER (PARTITION BY rank) AS is_last,
  FROM int_passes
  JOIN sizes USING (rank)
),
counted AS (
  SELECT
    *,
    count(*) FILTER (WHERE is_large) OVER (PARTITION BY rank ORDER BY pass_id) AS cycle,
  FROM sized
),
-- how many passes usually follow a target before the next one
cycles AS (
  SELECT rank, mode(drafts ORDER BY drafts) AS drafts
  FROM (
    SELECT rank, cycle, count(*) - 1 AS drafts
    FROM counted
    WHERE cycle > 0
    GROUP BY rank, cycle
    QUALIFY cycle < max(cycle) OVER (PARTITION BY rank)
  )
  GROUP BY rank
),
drafts AS (
  SELECT rank, mode(layers ORDER BY layers) AS layers
  FROM sized
  WHERE NOT is_large AND NOT is_first AND NOT is_last
  GROUP BY rank
),
targets AS (
  SELECT
    counted.*,
    is_large OR (range_phase IS NULL AND (
      ((is_first OR is_last) AND counted.layers > coalesce(drafts.layers, 0))
      OR 2 * counted.layers > sizes.layers + drafts.layers
      OR (is_last AND cycles.drafts = row_number() OVER (
        PARTITION BY counted.rank, counted.cycle ORDER BY counted.pass_id
      ) - 2)
    )) AS is_target,
  FROM counted
  JOIN sizes USING (rank)
  LEFT JOIN drafts USING (rank)
  LEFT JOIN cycles USING (rank)
),
usual AS (
  SELECT rank, is_target, mode(gemms ORDER BY gemms) AS gemms
  FROM targets
  WHERE NOT is_first AND NOT is_last
  GROUP BY rank, is_target
),
habits AS (
  SELECT
    rank,
    2 * count(*) FILTER (WHERE replay_id > 0) > count(*) AS in_graphs,
    2 * count(*) FILTER (WHERE is_chunked) > count(*) AS chunked,
  FROM targets
  WHERE is_target
  GROUP BY rank
),
roles AS (
  SELECT
    targets.*,
    CASE
      WHEN NOT is_target THEN 'draft'
      WHEN range_phase = 'prefill' THEN 'prefill'
      WHEN range_phase = 'verify' THEN 'target'
      WHEN NOT is_large THEN 'target'
      WHEN is_chunked AND NOT habits.chunked THEN 'prefill'
      WHEN replay_id = 0 AND habits.in_graphs THEN 'prefill'
      ELSE 'target'
    END AS role,
    coalesce(is_first AND targets.gemms < usual.gemms, FALSE) AS is_cut,
    coalesce(is_last AND targets.gemms < usual.gemms, FALSE) AS ends_cut,
  FROM targets
  LEFT JOIN habits USING (rank)
  LEFT JOIN usual USING (rank, is_target)
)
SELECT
  pass_id,
  rank,
  replay_id,
  first_activity_id,
  role,
  lag(role) OVER (PARTITION BY rank ORDER BY pass_id) AS after,
  gemms,
  layers,
  range_phase,
  is_cut,
  ends_cut,
FROM roles
