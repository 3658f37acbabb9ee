-- Launches of CUDA graphs: how long before the GPU started a replay its call began.
-- Grain: one row per graph launch (rank, launch_id)
-- Needs: int_replays, int_launches, int_attributed
-- Columns:
--   rank INTEGER  process driving one GPU
--   launch_id BIGINT  the API call in `api_calls`
--   round_id BIGINT  round in which the replay started
--   phase VARCHAR  phase in which the replay started
--   lead_ns BIGINT  start of the replay minus start of the call
--   host_ns BIGINT  time that the host spent in the call
--   kernels BIGINT  kernels of the replay
WITH firsts AS (
  SELECT
    replay_id,
    arg_min(round_id, activity_id) AS round_id,
    arg_min(phase, activity_id) AS phase,
  FROM int_attributed
  WHERE replay_id IS NOT NULL
  GROUP BY replay_id
)
SELECT
  replays.rank,
  launches.launch_id,
  firsts.round_id,
  firsts.phase,
  replays.start_ns - launches.launch_start_ns AS lead_ns,
  launches.launch_end_ns - launches.launch_start_ns AS host_ns,
  replays.kernels,
FROM int_replays AS replays
JOIN int_launches AS launches USING (process_id, correlation_id)
JOIN firsts USING (replay_id)
