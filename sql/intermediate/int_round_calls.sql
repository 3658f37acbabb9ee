-- API calls of each round: launches by the round of what they launched, synchronisations by the
-- round in which they began.
-- Grain: one row per rank, round and API call
-- Needs: stg_api_calls, int_rounds, int_attributed
-- Columns:
--   rank INTEGER  process driving one GPU
--   round_id BIGINT  the round
--   is_sync BOOLEAN  may have blocked the host
--   host_ns BIGINT  time that the host spent in the call
SELECT calls.rank, calls.round_id, FALSE AS is_sync, api.end_ns - api.start_ns AS host_ns
FROM (
  SELECT DISTINCT rank, round_id, launch_id
  FROM int_attributed
  WHERE round_id IS NOT NULL AND launch_id IS NOT NULL
) AS calls
JOIN stg_api_calls AS api ON api.api_call_id = calls.launch_id
UNION ALL
SELECT rounds.rank, rounds.round_id, TRUE, api.end_ns - api.start_ns
FROM (SELECT * FROM stg_api_calls WHERE is_sync AND rank IS NOT NULL) AS api
ASOF JOIN int_rounds AS rounds ON api.rank = rounds.rank AND api.start_ns >= rounds.start_ns
WHERE api.start_ns < rounds.end_ns
