-- Intervals in which the profiler itself was at work.
-- Grain: one row per profiler interval
-- Needs: overheads
-- Columns:
--   process_id INTEGER  process that was held up
--   start_ns BIGINT  start of the profiler's work
--   end_ns BIGINT  end of the profiler's work
SELECT
  process_id,
  start_ns,
  end_ns,
FROM overheads
WHERE end_ns > start_ns
