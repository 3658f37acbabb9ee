-- The API call behind each correlation id. Ids are unique per process only; where a runtime and
-- a driver call share one, the outer call is the launch.
-- Grain: one row per process and correlation id (process_id, correlation_id)
-- Needs: stg_api_calls
-- Kept: table
-- Columns:
--   process_id INTEGER  process that called
--   correlation_id BIGINT  id that the launched activity carries too
--   launch_id BIGINT  api_call_id of the launch
--   thread_id BIGINT  thread that called
--   launch_start_ns BIGINT  start of the call
--   launch_end_ns BIGINT  return of the call
--   is_graph_launch BOOLEAN  launches a whole graph
SELECT
  process_id,
  correlation_id,
  arg_min(api_call_id, (start_ns, api_call_id)) AS launch_id,
  arg_min(coalesce(thread_id, -1), (start_ns, api_call_id)) AS thread_id,
  min(start_ns) AS launch_start_ns,
  arg_min(end_ns, (start_ns, api_call_id)) AS launch_end_ns,
  bool_or(is_graph_launch) AS is_graph_launch,
FROM stg_api_calls
WHERE correlation_id IS NOT NULL
GROUP BY process_id, correlation_id
