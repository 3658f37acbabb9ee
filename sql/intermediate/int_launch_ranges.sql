-- The innermost range of any kind in which a launch was made, and whether it ran.
-- Grain: one row per launch inside a range (launch_id)
-- Needs: int_launches, stg_ranges, int_activities
-- Columns:
--   launch_id BIGINT  the launching API call
--   range_id BIGINT  innermost range open on its thread
--   rank INTEGER  rank that ran it; NULL when nothing of it was recorded
WITH stretches AS (
  SELECT * FROM flatten_ranges('stg_ranges') WHERE range_id IS NOT NULL
),
ran AS (
  SELECT launch_id, min(rank) AS rank
  FROM int_activities
  WHERE launch_id IS NOT NULL
  GROUP BY launch_id
)
SELECT
  launches.launch_id,
  stretches.range_id,
  ran.rank,
FROM int_launches AS launches
ASOF JOIN stretches
  ON launches.process_id = stretches.process_id
  AND launches.thread_id = stretches.thread_id
  AND launches.launch_start_ns >= stretches.start_ns
LEFT JOIN ran ON ran.launch_id = launches.launch_id
WHERE launches.launch_start_ns < stretches.end_ns
