-- Idle time by cause and host activity, with the time under the profiler's own work set apart.
-- Grain: one row per gap, cause and stretch of host activity
-- Needs: int_idle_parts, int_host_pieces, int_profiler_time, stg_ranges
-- Kept: table
-- Columns:
--   activity_id BIGINT  the activity that ends the gap
--   rank INTEGER  process driving one GPU
--   round_id BIGINT  round that the gap lies in
--   cause VARCHAR  host_late, launch_latency, in_graph, dependency, profiler or unknown
--   host_range VARCHAR  innermost range open on the launching thread, for host_late
--   start_ns BIGINT  start of the piece
--   end_ns BIGINT  end of the piece
--   idle_ns BIGINT  idle time of that cause
WITH pieces AS (
  SELECT activity_id, rank, round_id, process_id, cause, NULL AS host_range, start_ns, end_ns
  FROM int_idle_parts
  WHERE cause <> 'host_late'
  UNION ALL
  SELECT
    h.activity_id, h.rank, h.round_id, h.process_id, h.cause, r.name, h.start_ns, h.end_ns,
  FROM int_host_pieces AS h
  LEFT JOIN stg_ranges AS r USING (range_id)
),
measured AS (
  SELECT
    pieces.*,
    (
      coalesce(upper.until_end_ns - greatest(0, upper.end_ns - pieces.end_ns), 0)
      - coalesce(lower.until_end_ns - greatest(0, lower.end_ns - pieces.start_ns), 0)
    )::BIGINT AS profiler_ns,
  FROM pieces
  ASOF LEFT JOIN int_profiler_time AS lower
    ON pieces.process_id = lower.process_id AND pieces.start_ns >= lower.start_ns
  ASOF LEFT JOIN int_profiler_time AS upper
    ON pieces.process_id = upper.process_id AND pieces.end_ns >= upper.start_ns
)
SELECT
  activity_id, rank, round_id, cause, host_range, start_ns, end_ns,
  end_ns - start_ns - profiler_ns AS idle_ns,
FROM measured
WHERE end_ns - start_ns > profiler_ns
UNION ALL
SELECT activity_id, rank, round_id, 'profiler', NULL, start_ns, end_ns, profiler_ns
FROM measured
WHERE profiler_ns > 0
