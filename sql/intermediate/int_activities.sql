-- GPU activities in the one total order that every rule uses, joined with their launch.
-- Grain: one row per GPU activity (activity_id)
-- Needs: int_gpu_events, int_launches, int_replays
-- Kept: table
-- Columns:
--   activity_id BIGINT  position in the order (rank, start, priority, stream, kind, id)
--   rank INTEGER  process driving one GPU
--   process_id INTEGER  process that launched it
--   start_ns BIGINT  start of execution
--   end_ns BIGINT  end of execution
--   stream_id BIGINT  stream, unique within the process
--   kind VARCHAR  kernel, memory_op or graph_span
--   source_id BIGINT  id within its own table
--   name_id INTEGER  kernel name; NULL for other kinds
--   priority TINYINT  who owns an instant: 0 compute, 1 collective, 2 copy or fill
--   category VARCHAR  what the activity does
--   subcategory VARCHAR  finer kind
--   replay_id BIGINT  graph replay it belongs to; NULL when launched alone
--   launch_id BIGINT  launching API call; NULL when the capture has none
--   thread_id BIGINT  thread of the launch
--   launch_start_ns BIGINT  start of the launching call
SELECT
  row_number() OVER (
    ORDER BY e.rank, e.start_ns, e.priority, e.stream_id, e.kind, e.source_id
  ) AS activity_id,
  e.rank,
  e.process_id,
  e.start_ns,
  e.end_ns,
  e.stream_id,
  e.kind,
  e.source_id,
  e.name_id,
  e.priority,
  e.category,
  e.subcategory,
  r.replay_id,
  l.launch_id,
  l.thread_id,
  l.launch_start_ns,
FROM int_gpu_events AS e
LEFT JOIN int_replays AS r USING (process_id, correlation_id)
LEFT JOIN int_launches AS l USING (process_id, correlation_id)
