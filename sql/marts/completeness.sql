-- How complete the recording of each rank is: launch calls against what they ran.
-- Grain: one row per rank (rank)
-- Needs: ranks, int_launch_records, int_replays
-- Columns:
--   rank INTEGER  process driving one GPU
--   eager_launches BIGINT  kernel launches recorded on the host
--   eager_recorded BIGINT  of these, with their kernel
--   graph_launches BIGINT  graph launches recorded on the host
--   graph_recorded BIGINT  of these, with GPU activity
--   replays BIGINT  replays recorded
--   replays_full BIGINT  of these, with as many kernels as the fullest replay of their graph
--   opaque_replays BIGINT  replays of which only the span is known
--   idle_is_trustworthy BOOLEAN  enough was recorded for a gap to mean that nothing ran
WITH calls AS (
  SELECT
    rank,
    count(*) FILTER (WHERE NOT is_graph_launch) AS eager_launches,
    count(*) FILTER (WHERE NOT is_graph_launch AND ran) AS eager_recorded,
    count(*) FILTER (WHERE is_graph_launch) AS graph_launches,
    count(*) FILTER (WHERE is_graph_launch AND ran) AS graph_recorded,
  FROM int_launch_records
  GROUP BY rank
),
replays AS (
  SELECT
    rank,
    count(*) AS replays,
    count(*) FILTER (WHERE kernels = full_kernels AND NOT is_opaque) AS replays_full,
    count(*) FILTER (WHERE is_opaque) AS opaque_replays,
  FROM (
    -- the first and the last replay of a rank may be cut by the recording
    SELECT *, max(kernels) OVER (PARTITION BY process_id, signature) AS full_kernels
    FROM int_replays
    QUALIFY is_opaque OR count(*) OVER (PARTITION BY rank) < 4
      OR replay_id NOT IN (
        min(replay_id) OVER (PARTITION BY rank), max(replay_id) OVER (PARTITION BY rank)
      )
  )
  GROUP BY rank
),
counts AS (
  SELECT
    ranks.rank,
    coalesce(calls.eager_launches, 0) AS eager_launches,
    coalesce(calls.eager_recorded, 0) AS eager_recorded,
    coalesce(calls.graph_launches, 0) AS graph_launches,
    coalesce(calls.graph_recorded, 0) AS graph_recorded,
    coalesce(replays.replays, 0) AS replays,
    coalesce(replays.replays_full, 0) AS replays_full,
    coalesce(replays.opaque_replays, 0) AS opaque_replays,
  FROM ranks
  LEFT JOIN calls USING (rank)
  LEFT JOIN replays USING (rank)
)
SELECT
  *,
  opaque_replays = 0
  AND 50 * eager_recorded >= 49 * eager_launches
  AND 50 * graph_recorded >= 49 * graph_launches
  -- a replay that lost kernels makes its round incomplete, and such rounds do not count
  AND 5 * replays_full >= 4 * replays AS idle_is_trustworthy,
FROM counts
