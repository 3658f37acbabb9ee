-- Replays of CUDA graphs: everything that one launch of a graph ran. A replay is known by its
-- launch call, by graph nodes, or, in captures without host rows, by many kernels of one launch.
-- Grain: one row per replay (process_id, correlation_id)
-- Needs: int_gpu_events, int_launches
-- Kept: table
-- Columns:
--   process_id INTEGER  process that launched it
--   correlation_id BIGINT  launching API call within the process
--   rank INTEGER  process driving one GPU
--   replay_id BIGINT  dense over the store, in (rank, start_ns) order
--   start_ns BIGINT  start of its first activity
--   end_ns BIGINT  end of its last activity
--   activities BIGINT  activities recorded
--   kernels BIGINT  kernels recorded
--   layers BIGINT  main attention and recurrent kernels, one per layer of the model
--   signature BIGINT  equal for replays of the same graph
--   is_opaque BOOLEAN  only the span is known (graph-level capture)
SELECT
  e.process_id,
  e.correlation_id,
  min(e.rank) AS rank,
  row_number() OVER (ORDER BY min(e.rank), min(e.start_ns), e.process_id, e.correlation_id)
    AS replay_id,
  min(e.start_ns) AS start_ns,
  max(e.end_ns) AS end_ns,
  count(*) AS activities,
  count(*) FILTER (WHERE e.kind = 'kernel') AS kernels,
  count(*) FILTER (WHERE is_layer_kernel(e.category, e.subcategory)) AS layers,
  coalesce(
    min(e.graph_id),
    (sum((hash(e.name_id) >> 24)::BIGINT) % 1000000007)::BIGINT
  ) AS signature,
  bool_or(e.kind = 'graph_span') AS is_opaque,
FROM int_gpu_events AS e
LEFT JOIN int_launches AS l USING (process_id, correlation_id)
WHERE e.correlation_id IS NOT NULL
GROUP BY e.process_id, e.correlation_id
HAVING
  bool_or(l.is_graph_launch)
  OR bool_or(e.graph_node_id IS NOT NULL)
  OR bool_or(e.kind = 'graph_span')
  OR (count(l.launch_id) = 0 AND count(*) FILTER (WHERE e.kind = 'kernel') > 1)
