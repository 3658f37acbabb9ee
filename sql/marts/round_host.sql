-- What each round asked of the host: launch calls and synchronisations, and the time in them.
-- Grain: one row per round (rank, round_id)
-- Needs: rounds, int_round_calls
-- Columns:
--   rank INTEGER  process driving one GPU
--   round_id BIGINT  the round
--   launches BIGINT  API calls that launched something that ran in the round
--   syncs BIGINT  synchronising calls that began in the round
--   launch_ns BIGINT  host time in the launches
--   sync_ns BIGINT  host time in the synchronisations
SELECT
  rank,
  round_id,
  count(*) FILTER (WHERE NOT is_sync) AS launches,
  count(*) FILTER (WHERE is_sync) AS syncs,
  coalesce(sum(host_ns) FILTER (WHERE NOT is_sync), 0)::BIGINT AS launch_ns,
  coalesce(sum(host_ns) FILTER (WHERE is_sync), 0)::BIGINT AS sync_ns,
FROM rounds
LEFT JOIN int_round_calls USING (rank, round_id)
GROUP BY rank, round_id
