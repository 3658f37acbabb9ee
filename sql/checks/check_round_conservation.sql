-- Exclusive and idle time of a round must add up to its wall time.
-- Grain: one row per round that does not add up (rank, round_id)
-- Needs: rounds, round_attribution, round_idle
-- Columns:
--   rank INTEGER  process driving one GPU
--   round_id BIGINT  the round
--   wall_ns BIGINT  wall time
--   accounted_ns BIGINT  exclusive plus idle time
WITH accounted AS (
  SELECT rank, round_id, exclusive_ns AS ns FROM round_attribution
  UNION ALL
  SELECT rank, round_id, idle_ns FROM round_idle
),
sums AS (
  SELECT rank, round_id, sum(ns)::BIGINT AS ns
  FROM accounted
  GROUP BY rank, round_id
)
SELECT rank, round_id, rounds.wall_ns, coalesce(sums.ns, 0) AS accounted_ns
FROM rounds
FULL JOIN sums USING (rank, round_id)
WHERE rounds.wall_ns IS DISTINCT FROM coalesce(sums.ns, 0)
