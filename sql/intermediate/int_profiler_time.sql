-- The union of the profiler's own work per process, as disjoint stretches with a running total.
-- Grain: one row per stretch (process_id, start_ns)
-- Needs: stg_overheads
-- Kept: table
-- Columns:
--   process_id INTEGER  process that was held up
--   start_ns BIGINT  start of the stretch
--   end_ns BIGINT  end of the stretch
--   until_end_ns BIGINT  profiler time of the process up to the end of the stretch
WITH swept AS (
  SELECT
    process_id,
    start_ns,
    end_ns,
    max(end_ns) OVER (
      PARTITION BY process_id ORDER BY start_ns, end_ns
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS covered_until_ns,
  FROM stg_overheads
),
stretches AS (
  SELECT process_id, greatest(start_ns, coalesce(covered_until_ns, start_ns)) AS start_ns, end_ns
  FROM swept
  WHERE end_ns > coalesce(covered_until_ns, start_ns)
)
SELECT
  process_id,
  start_ns,
  end_ns,
  (sum(end_ns - start_ns) OVER (PARTITION BY process_id ORDER BY start_ns))::BIGINT AS until_end_ns,
FROM stretches
