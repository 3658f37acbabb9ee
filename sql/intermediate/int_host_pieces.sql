-- Time in which the GPU waited for the host, cut by what the host was doing: the innermost range
-- open on the launching thread. A piece starts where the wait starts or where a range does.
-- Grain: one row per wait and stretch of host activity
-- Needs: int_idle_parts, stg_ranges
-- Kept: table
-- Columns:
--   activity_id BIGINT  the activity that ends the gap
--   rank INTEGER  process driving one GPU
--   round_id BIGINT  round that the gap lies in
--   process_id INTEGER  process of the activity that ends the gap
--   cause VARCHAR  always host_late
--   range_id BIGINT  innermost range; NULL when none was open
--   start_ns BIGINT  start of the piece
--   end_ns BIGINT  end of the piece
WITH waits AS (
  SELECT * FROM int_idle_parts WHERE cause = 'host_late' AND end_ns > start_ns
),
-- one copy per rank that a thread launches for, so that waits of one copy never overlap
stretches AS (
  SELECT
    launchers.rank,
    flat.thread_id,
    flat.range_id,
    flat.start_ns,
    coalesce(flat.end_ns, 9223372036854775807) AS end_ns,
  FROM flatten_ranges('stg_ranges') AS flat
  JOIN (SELECT DISTINCT rank, process_id, thread_id FROM waits) AS launchers
    USING (process_id, thread_id)
),
firsts AS (
  SELECT rank, thread_id, min(start_ns) AS first_ns
  FROM stretches
  GROUP BY rank, thread_id
),
at_start AS (
  SELECT
    waits.*,
    stretches.range_id,
    coalesce(stretches.end_ns, firsts.first_ns, waits.end_ns) AS until_ns,
  FROM waits
  LEFT JOIN firsts USING (rank, thread_id)
  ASOF LEFT JOIN stretches
    ON waits.rank = stretches.rank
    AND waits.thread_id = stretches.thread_id
    AND waits.start_ns >= stretches.start_ns
),
inside AS (
  SELECT
    waits.*,
    stretches.range_id,
    stretches.start_ns AS from_ns,
    stretches.end_ns AS until_ns,
  FROM stretches
  ASOF JOIN waits
    ON stretches.rank = waits.rank
    AND stretches.thread_id = waits.thread_id
    AND stretches.start_ns > waits.start_ns
  WHERE stretches.start_ns < waits.end_ns
)
SELECT
  activity_id, rank, round_id, process_id, cause, range_id, start_ns,
  least(end_ns, until_ns) AS end_ns,
FROM at_start
UNION ALL
SELECT
  activity_id, rank, round_id, process_id, cause, range_id, from_ns, least(end_ns, until_ns),
FROM inside
