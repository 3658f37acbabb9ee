-- Launch calls of the host with whether anything they launched was recorded. Where most were, the
-- calls before the first and after the last recorded one are left out: the two sides of a capture
-- do not begin and end at the same moment.
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
calls AS (
  SELECT
    api.api_call_id AS launch_id,
    api.rank,
    api.is_graph_launch,
    api.start_ns,
    ran.launch_id IS NOT NULL AS ran,
  FROM stg_api_calls AS api
  LEFT JOIN ran ON ran.launch_id = api.api_call_id
  WHERE api.rank IS NOT NULL AND (api.is_graph_launch OR api.is_kernel_launch)
),
known AS (
  SELECT
    rank,
    is_graph_launch,
    min(start_ns) FILTER (WHERE ran) AS from_ns,
    max(start_ns) FILTER (WHERE ran) AS until_ns,
    2 * count(*) FILTER (WHERE ran) >= count(*) AS most_ran,
  FROM calls
  GROUP BY rank, is_graph_launch
)
SELECT
  calls.launch_id,
  calls.rank,
  calls.is_graph_launch,
  calls.ran,
FROM calls
JOIN known USING (rank, is_graph_launch)
WHERE NOT known.most_ran OR calls.start_ns BETWEEN known.from_ns AND known.until_ns
