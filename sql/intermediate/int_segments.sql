-- Cuts the activities of a rank into segments, each at most one forward pass of one model.
-- A whole graph replay is a lane of its own; everything launched alone shares the eager lane.
-- A lane is cut after sampling or speculation kernels, before an embedding that follows a GEMM,
-- and where a phase range changes; the eager lane also where a replay lies between.
-- Grain: one row per GPU activity (activity_id)
-- Needs: int_activities, int_replays, int_launch_phases
-- Kept: table
-- Columns:
--   activity_id BIGINT  the activity
--   rank INTEGER  process driving one GPU
--   replay_id BIGINT  the whole replay that is the lane; 0 for the eager lane
--   segment BIGINT  number of the segment in its lane
--   mark VARCHAR  gemm, embedding or break: what ends and begins passes; NULL otherwise
--   range_phase VARCHAR  phase that a range states for it
WITH eager_layers AS (
  SELECT rank, count(*) AS layers
  FROM int_activities
  WHERE replay_id IS NULL AND is_layer_kernel(category, subcategory)
  GROUP BY rank
),
-- A piecewise graph holds what lies between two eager attentions: it is no pass of its own.
whole_replays AS (
  SELECT replay_id
  FROM int_replays
  LEFT JOIN eager_layers USING (rank)
  WHERE int_replays.layers > 0 OR eager_layers.layers IS NULL
),
marked AS (
  SELECT
    a.activity_id,
    a.rank,
    coalesce(w.replay_id, 0) AS replay_id,
    CASE
      WHEN a.category IN ('sampling', 'spec') THEN 'break'
      WHEN a.category = 'embedding' THEN 'embedding'
      WHEN a.category = 'gemm' THEN 'gemm'
    END AS mark,
    p.range_id,
    p.phase AS range_phase,
    max(w.replay_id) OVER (
      PARTITION BY a.rank ORDER BY a.activity_id
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS latest_replay_id,
  FROM int_activities AS a
  LEFT JOIN whole_replays AS w USING (replay_id)
  LEFT JOIN int_launch_phases AS p USING (launch_id)
),
compared AS (
  SELECT
    *,
    lag(mark) OVER lane AS previous_mark,
    lag(range_id) OVER lane AS previous_range_id,
    lag(latest_replay_id) OVER lane AS previous_replay_id,
    last_value(mark IGNORE NULLS) OVER (
      PARTITION BY rank, replay_id ORDER BY activity_id
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS latest_mark,
  FROM marked
  WINDOW lane AS (PARTITION BY rank, replay_id ORDER BY activity_id)
)
SELECT
  activity_id,
  rank,
  replay_id,
  (count(*) FILTER (
    WHERE (previous_mark = 'break' AND mark IS DISTINCT FROM 'break')
    OR (mark = 'embedding' AND latest_mark = 'gemm')
    OR (replay_id = 0 AND (
      range_id IS DISTINCT FROM previous_range_id
      OR latest_replay_id IS DISTINCT FROM previous_replay_id
    ))
  ) OVER (
    PARTITION BY rank, replay_id ORDER BY activity_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ))::BIGINT AS segment,
  mark,
  range_phase,
FROM compared
