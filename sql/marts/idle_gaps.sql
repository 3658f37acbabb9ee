-- Every stretch of a round in which nothing ran, with its cause.
-- Grain: one row per idle stretch and cause (rank, start_ns, cause, end_ns)
-- Needs: int_idle, int_attributed, int_activity_phases
-- Columns:
--   rank INTEGER  process driving one GPU
--   round_id BIGINT  the round
--   phase VARCHAR  phase of the activity that ends the gap
--   cause VARCHAR  host_late, launch_latency, in_graph, dependency, profiler or unknown
--   host_range VARCHAR  innermost range open on the launching thread, for host_late
--   start_ns BIGINT  start of the stretch
--   end_ns BIGINT  end of the stretch
--   idle_ns BIGINT  idle time of that cause within the stretch
--   next_kind VARCHAR  what ends the gap: kernel, memory_op or graph_span
--   next_id BIGINT  its id in its own table
SELECT
  int_idle.rank,
  int_idle.round_id,
  coalesce(phases.phase, 'other') AS phase,
  int_idle.cause,
  int_idle.host_range,
  int_idle.start_ns,
  int_idle.end_ns,
  int_idle.idle_ns,
  next.kind AS next_kind,
  next.source_id AS next_id,
FROM int_idle
JOIN int_attributed AS next USING (activity_id)
LEFT JOIN int_activity_phases AS phases USING (activity_id)
