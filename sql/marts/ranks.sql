-- The ranks of the capture: their GPU and how busy it was. Busy time is the union of intervals;
-- the sum of durations is larger when kernels overlap.
-- Grain: one row per rank (rank)
-- Needs: int_ranks
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
SELECT
  rank,
  device_name,
  memory_bandwidth_bytes_per_s,
  kernels,
  kernel_sum_ns,
  kernel_busy_ns,
  memory_ops,
  graph_spans,
  graph_span_ns,
  first_start_ns,
  last_end_ns,
FROM int_ranks
