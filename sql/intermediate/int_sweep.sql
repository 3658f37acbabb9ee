-- A left-to-right sweep over each rank's activities: what was already running when each started.
-- Grain: one row per GPU activity (activity_id)
-- Needs: int_activities
-- Kept: table
-- Columns:
--   activity_id BIGINT  the activity
--   rank INTEGER  process driving one GPU
--   priority TINYINT  who owns an instant: 0 compute, 1 collective, 2 copy or fill
--   start_ns BIGINT  start of execution
--   end_ns BIGINT  end of execution
--   owned_from_ns BIGINT  from here to its end no earlier activity of its own priority runs
--   covered_01_ns BIGINT  time that it adds to the union of priorities 0 and 1
--   busy_until_ns BIGINT  latest end of all activities before it; NULL for the first
--   busy_activity_id BIGINT  which activity that is; of equal ends the last started
WITH swept AS (
  SELECT
    activity_id,
    rank,
    priority,
    start_ns,
    end_ns,
    max(end_ns) OVER (
      PARTITION BY rank, priority ORDER BY activity_id
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS own_until_ns,
    max(end_ns) FILTER (WHERE priority < 2) OVER earlier AS until_01_ns,
    -- end and position in one number, so that one running maximum yields both
    max(end_ns::HUGEINT * 1099511627776 + activity_id) OVER earlier AS busy,
  FROM int_activities
  WINDOW earlier AS (
    PARTITION BY rank ORDER BY activity_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  )
)
SELECT
  activity_id,
  rank,
  priority,
  start_ns,
  end_ns,
  greatest(start_ns, coalesce(own_until_ns, start_ns)) AS owned_from_ns,
  if(
    priority < 2, greatest(0, end_ns - greatest(start_ns, coalesce(until_01_ns, start_ns))), 0
  ) AS covered_01_ns,
  ((busy - busy_activity_id) // 1099511627776)::BIGINT AS busy_until_ns,
  busy_activity_id::BIGINT AS busy_activity_id,
FROM (
  -- times before the start of a capture are negative, remainders must not be
  SELECT *, (busy % 1099511627776 + 1099511627776) % 1099511627776 AS busy_activity_id
  FROM swept
)
