-- Everything that ran on a GPU, in one shape: kernels, copies, fills, and opaque graph spans.
-- Grain: one row per GPU activity
-- Needs: stg_kernels, stg_memory_ops, stg_graph_spans, int_kernel_classes
-- Columns:
--   rank INTEGER  process driving one GPU
--   process_id INTEGER  process that launched it
--   start_ns BIGINT  start of execution
--   end_ns BIGINT  end of execution
--   stream_id BIGINT  stream, unique within the process
--   correlation_id BIGINT  launching API call within the process
--   graph_id BIGINT  CUDA graph of the node
--   graph_node_id BIGINT  graph node, stable over replays
--   kind VARCHAR  kernel, memory_op or graph_span
--   source_id BIGINT  id within its own table
--   name_id INTEGER  kernel name; NULL for other kinds
--   priority TINYINT  who owns an instant: 0 compute, 1 collective, 2 copy or fill
--   category VARCHAR  what the activity does
--   subcategory VARCHAR  finer kind
WITH capture AS (
  SELECT coalesce(bool_or(is_layer_kernel(category, subcategory)), FALSE) AS has_attention
  FROM int_kernel_classes
),
-- Where attention is a kernel of its own, a softmax that does not say of what is one over logits.
classes AS (
  SELECT
    name_id,
    if(subcategory = 'softmax_generic' AND has_attention, 'sampling', category) AS category,
    if(subcategory = 'softmax_generic' AND has_attention, 'softmax', subcategory) AS subcategory,
  FROM int_kernel_classes
  CROSS JOIN capture
)
SELECT
  k.rank, k.process_id, k.start_ns, k.end_ns, k.stream_id, k.correlation_id, k.graph_id,
  k.graph_node_id, 'kernel' AS kind, k.kernel_id AS source_id, k.name_id,
  (CASE c.category
    WHEN 'collective' THEN 1 WHEN 'memcpy' THEN 2 WHEN 'memset' THEN 2 ELSE 0
  END)::TINYINT AS priority,
  c.category, c.subcategory,
FROM stg_kernels AS k
JOIN classes AS c USING (name_id)
UNION ALL
SELECT
  rank, process_id, start_ns, end_ns, stream_id, correlation_id, graph_id, graph_node_id,
  'memory_op', memory_op_id, NULL, 2::TINYINT, kind, copy_kind,
FROM stg_memory_ops
UNION ALL
SELECT
  rank, process_id, start_ns, end_ns, stream_id, correlation_id, graph_id, NULL,
  'graph_span', graph_span_id, NULL, 0::TINYINT, 'unclassified', 'graph_span',
FROM stg_graph_spans
