-- Launch calls of the host with whether anything they launched was recorded. Calls after the last
-- one that is known to have run are left out: the recording may have stopped before their work.
-- Grain: one row per launch call (launch_id)
-- Needs: stg_api_calls, int_activities
-- Columns:
--   launch_id BIGINT  the API call
--   rank INTEGER  process driving one GPU
--   is_graph_launch BOOLEAN  launched a whole graph
--   ran BOOLEAN  GPU activity of it was recorded
WITH ran AS (
  SELECT DISTINCT launch_id FROM int_activities WHERE launch_id IS NOT NULL
),
known AS (
  SELECT rank, max(start_ns) AS until_ns
  FROM stg_api_calls
  WHERE api_call_id IN (SELECT launch_id FROM ran)
  GROUP BY rank
)
SELECT
  calls.api_call_id AS launch_id,
  calls.rank,
  calls.is_graph_launch,
  ran.launch_id IS NOT NULL AS ran,
FROM stg_api_calls AS calls
JOIN known ON known.rank = calls.rank
LEFT JOIN ran ON ran.launch_id = calls.api_call_id
WHERE (calls.is_graph_launch OR (calls.is_kernel_launch AND calls.start_ns <= known.until_ns))
