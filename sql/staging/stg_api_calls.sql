-- CUDA and HIP API calls with what kind of call each is.
-- Grain: one row per API call (api_call_id)
-- Needs: api_calls
-- Columns:
--   api_call_id BIGINT  dense over the store
--   rank INTEGER  rank of the process, if it drives exactly one GPU
--   process_id INTEGER  process that called
--   thread_id BIGINT  thread that called
--   start_ns BIGINT  start of the call
--   end_ns BIGINT  return of the call
--   name VARCHAR  API name without version suffix
--   correlation_id BIGINT  id that the launched activity carries too
--   is_graph_launch BOOLEAN  launches a whole graph
--   is_kernel_launch BOOLEAN  launches one kernel
--   is_memory_call BOOLEAN  enqueues a copy or a fill
--   is_sync BOOLEAN  may block the host until the GPU has finished something
SELECT
  api_call_id,
  rank,
  process_id,
  thread_id,
  start_ns,
  greatest(start_ns, end_ns) AS end_ns,
  name,
  correlation_id,
  regexp_matches(name, '^(cuda|cu|hip)GraphLaunch') AS is_graph_launch,
  regexp_matches(name, '^(cuda|cu|hip)(Ext|Module|HccModule)?Launch(Cooperative)?Kernel')
    AS is_kernel_launch,
  regexp_matches(name, '^(cuda|cu|hip)(Memcpy|Memset)') AS is_memory_call,
  regexp_matches(name, '^(cuda|cu|hip)((Stream|Event|Device|Ctx)Synchronize|Memcpy([A-Z]\w*)?$)')
  AND NOT regexp_matches(name, 'Async') AS is_sync,
FROM api_calls
