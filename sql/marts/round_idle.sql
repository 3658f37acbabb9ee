-- Idle time of every round by phase, cause and what the host was doing.
-- Grain: one row per round, phase, cause and host range (rank, round_id, phase, cause, host_range)
-- Needs: idle_gaps
-- Columns:
--   rank INTEGER  process driving one GPU
--   round_id BIGINT  the round
--   phase VARCHAR  phase of the activity that ends the gap
--   cause VARCHAR  host_late, launch_latency, in_graph, dependency, profiler or unknown
--   host_range VARCHAR  innermost range open on the launching thread, for host_late
--   idle_ns BIGINT  idle time
SELECT
  rank,
  round_id,
  phase,
  cause,
  host_range,
  sum(idle_ns)::BIGINT AS idle_ns,
FROM idle_gaps
GROUP BY ALL
