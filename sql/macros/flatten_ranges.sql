-- Cuts nested ranges of each thread into disjoint stretches that name the innermost open range.
-- `ranges_table` names a relation with (process_id, thread_id, range_id, start_ns, end_ns).
-- From a thread's first open to its last close nothing is left out: between ranges `range_id` is
-- NULL, and the stretch after the last close has no end.
-- A sorted sweep: the running sum of opens minus closes is the depth, and at a given depth the
-- range that is open is the one that was opened last. No inequality join, so it stays linear.
CREATE OR REPLACE MACRO flatten_ranges(ranges_table) AS TABLE
WITH events AS (
  SELECT process_id, thread_id, start_ns AS at_ns, 1 AS step, end_ns AS other_ns, range_id
  FROM query_table(ranges_table)
  UNION ALL
  SELECT process_id, thread_id, end_ns, -1, start_ns, range_id
  FROM query_table(ranges_table)
),
depths AS (
  SELECT
    *,
    sum(step) OVER sweep AS depth,
    row_number() OVER sweep AS event_number,
    lead(at_ns) OVER sweep AS next_ns,
  FROM events
  -- at one instant closes come before opens, and of several opens the longest is the outermost
  WINDOW sweep AS (
    PARTITION BY process_id, thread_id ORDER BY at_ns, step, other_ns DESC, range_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  )
),
innermost AS (
  SELECT
    process_id,
    thread_id,
    at_ns AS start_ns,
    next_ns AS end_ns,
    depth,
    last_value(CASE WHEN step = 1 THEN range_id END IGNORE NULLS) OVER (
      PARTITION BY process_id, thread_id, depth ORDER BY event_number
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS range_id,
  FROM depths
)
SELECT process_id, thread_id, start_ns, end_ns, if(depth > 0, range_id, NULL) AS range_id
FROM innermost
WHERE end_ns IS NULL OR end_ns > start_ns
