-- Gaps cut by cause. Between two nodes of one replay it is in_graph; without an API row unknown;
-- dependency when the next activity had been launched in time; otherwise host_late up to the
-- launch call and launch_latency from there on.
-- Grain: one row per gap and cause (activity_id, cause)
-- Needs: int_gaps
-- Columns:
--   activity_id BIGINT  the activity that ends the gap
--   rank INTEGER  process driving one GPU
--   round_id BIGINT  round that the gap lies in
--   process_id INTEGER  process of the activity that ends the gap
--   thread_id BIGINT  thread that launched it
--   cause VARCHAR  host_late, launch_latency, in_graph, dependency or unknown
--   start_ns BIGINT  start of the part of the gap
--   end_ns BIGINT  end of the part of the gap
WITH judged AS (
  SELECT
    *,
    CASE
      WHEN in_one_replay THEN 'in_graph'
      WHEN launch_start_ns IS NULL THEN 'unknown'
      WHEN launch_start_ns <= start_ns THEN 'dependency'
      ELSE 'launch_latency'
    END AS cause,
    least(launch_start_ns, end_ns) AS call_ns,
  FROM int_gaps
)
SELECT
  activity_id,
  rank,
  round_id,
  process_id,
  thread_id,
  cause,
  if(cause = 'launch_latency', call_ns, start_ns) AS start_ns,
  end_ns,
FROM judged
UNION ALL
SELECT activity_id, rank, round_id, process_id, thread_id, 'host_late', start_ns, call_ns
FROM judged
WHERE cause = 'launch_latency'
