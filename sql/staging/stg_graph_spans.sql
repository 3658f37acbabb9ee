-- Graph replays of a graph-level capture: the span is known, its kernels are not.
-- Grain: one row per graph span (graph_span_id)
-- Needs: graph_spans
-- Columns:
--   graph_span_id BIGINT  dense over the store, in (rank, start_ns) order
--   rank INTEGER  process driving one GPU
--   process_id INTEGER  process that launched it
--   start_ns BIGINT  start of execution
--   end_ns BIGINT  end of execution, never before the start
--   stream_id BIGINT  stream, unique within the process
--   correlation_id BIGINT  launching API call within the process
--   graph_id BIGINT  CUDA graph
SELECT
  graph_span_id,
  rank,
  process_id,
  start_ns,
  greatest(start_ns, end_ns) AS end_ns,
  coalesce(stream_id, -1) AS stream_id,
  correlation_id,
  graph_id,
FROM graph_spans
