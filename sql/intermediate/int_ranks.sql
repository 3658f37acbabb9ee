-- The ranks of the capture: their GPU and how busy it was.
-- Grain: one row per rank (rank)
-- Needs: stg_devices, int_activities
-- Columns:
--   rank INTEGER  process driving one GPU
--   device_name VARCHAR  name as the driver prints it
--   memory_bandwidth_bytes_per_s BIGINT  peak that the capture states
--   kernels BIGINT  kernels recorded
--   kernel_sum_ns BIGINT  sum of kernel durations
--   kernel_busy_ns BIGINT  time in which at least one kernel ran
--   memory_ops BIGINT  copies and fills recorded
--   graph_spans BIGINT  opaque graph replays recorded
--   graph_span_ns BIGINT  sum of their durations
--   first_start_ns BIGINT  start of the first activity
--   last_end_ns BIGINT  end of the last activity
WITH unions AS (
  SELECT
    rank,
    end_ns - greatest(start_ns, coalesce(max(end_ns) OVER (
      PARTITION BY rank ORDER BY activity_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), start_ns)) AS added_ns,
  FROM int_activities
  WHERE kind = 'kernel'
),
busy AS (
  SELECT rank, sum(added_ns) FILTER (WHERE added_ns > 0)::BIGINT AS kernel_busy_ns
  FROM unions
  GROUP BY rank
),
activity AS (
  SELECT
    rank,
    count(*) FILTER (WHERE kind = 'kernel') AS kernels,
    (sum(end_ns - start_ns) FILTER (WHERE kind = 'kernel'))::BIGINT AS kernel_sum_ns,
    count(*) FILTER (WHERE kind = 'memory_op') AS memory_ops,
    count(*) FILTER (WHERE kind = 'graph_span') AS graph_spans,
    (sum(end_ns - start_ns) FILTER (WHERE kind = 'graph_span'))::BIGINT AS graph_span_ns,
    min(start_ns) AS first_start_ns,
    max(end_ns) AS last_end_ns,
  FROM int_activities
  GROUP BY rank
)
SELECT
  rank,
  stg_devices.device_name,
  stg_devices.memory_bandwidth_bytes_per_s,
  coalesce(activity.kernels, 0) AS kernels,
  coalesce(activity.kernel_sum_ns, 0) AS kernel_sum_ns,
  coalesce(busy.kernel_busy_ns, 0) AS kernel_busy_ns,
  coalesce(activity.memory_ops, 0) AS memory_ops,
  coalesce(activity.graph_spans, 0) AS graph_spans,
  coalesce(activity.graph_span_ns, 0) AS graph_span_ns,
  activity.first_start_ns,
  activity.last_end_ns,
FROM stg_devices
LEFT JOIN activity USING (rank)
LEFT JOIN busy USING (rank)
