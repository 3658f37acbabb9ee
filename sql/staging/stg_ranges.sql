-- Host ranges with their messages; ranges that were never closed and GPU annotations are left out.
-- Grain: one row per range (range_id)
-- Needs: ranges, names
-- Columns:
--   range_id BIGINT  dense over the store
--   rank INTEGER  rank of the process, if it drives exactly one GPU
--   process_id INTEGER  process that opened it
--   thread_id BIGINT  thread that opened it
--   start_ns BIGINT  start on the host
--   end_ns BIGINT  end on the host
--   name VARCHAR  message of the range
--   kind VARCHAR  who wrote it: NVTX, record_function, operator or Python
SELECT
  ranges.range_id,
  ranges.rank,
  ranges.process_id,
  coalesce(ranges.thread_id, -1) AS thread_id,
  ranges.start_ns,
  ranges.end_ns,
  names.name,
  ranges.kind,
FROM ranges
JOIN names USING (name_id)
WHERE ranges.end_ns > ranges.start_ns AND ranges.kind <> 'gpu_annotation'
