-- Collectives of all ranks numbered so that equal numbers are one operation: by order within each
-- kind of operation, from the first moment at which every rank is being recorded.
-- Grain: one row per collective kernel (activity_id)
-- Needs: int_activities, stg_devices
-- Kept: table
-- Columns:
--   activity_id BIGINT  the kernel
--   rank INTEGER  process driving one GPU
--   operation VARCHAR  allreduce, allgather, …
--   number BIGINT  1, 2 … per rank and operation; NULL before every rank is recorded
--   duration_ns BIGINT  duration of the kernel
WITH operations AS (
  SELECT
    activity_id,
    rank,
    coalesce(nullif(regexp_extract(
      replace(coalesce(subcategory, ''), '_', ''),
      'allreduce|reducescatter|allgather|alltoall|broadcast|sendrecv|barrier|reduce'
    ), ''), coalesce(subcategory, 'other')) AS operation,
    start_ns,
    end_ns,
  FROM int_activities
  WHERE category = 'collective'
),
recorded AS (
  SELECT max(start_ns) AS from_ns
  FROM (SELECT rank, min(start_ns) AS start_ns FROM operations GROUP BY rank)
),
clocks AS (
  SELECT bool_and(clock_known) AS shared FROM stg_devices
),
placed AS (
  SELECT operations.*, end_ns > from_ns OR NOT clocks.shared AS on_all_ranks
  FROM operations
  CROSS JOIN recorded
  CROSS JOIN clocks
)
SELECT
  activity_id,
  rank,
  operation,
  if(on_all_ranks, row_number() OVER (
    PARTITION BY rank, operation, on_all_ranks ORDER BY activity_id
  ), NULL) AS number,
  end_ns - start_ns AS duration_ns,
FROM placed
