-- Kernels as the readers stored them.
-- Grain: one row per kernel (kernel_id)
-- Needs: kernels
-- Columns:
--   kernel_id BIGINT  dense over the store, in (rank, start_ns) order
--   rank INTEGER  process driving one GPU
--   process_id INTEGER  process that launched it
--   start_ns BIGINT  start of execution
--   end_ns BIGINT  end of execution, never before the start
--   stream_id BIGINT  stream, unique within the process
--   correlation_id BIGINT  launching API call within the process
--   graph_id BIGINT  CUDA graph of the node
--   graph_node_id BIGINT  graph node, stable over replays
--   name_id INTEGER  name of the kernel
SELECT
  kernel_id,
  rank,
  process_id,
  start_ns,
  greatest(start_ns, end_ns) AS end_ns,
  coalesce(stream_id, -1) AS stream_id,
  correlation_id,
  -- Nsight before 3.24 has no graph id, but its node ids carry it in their upper half
  coalesce(graph_id, nullif(graph_node_id >> 32, 0)) AS graph_id,
  graph_node_id,
  name_id,
FROM kernels
