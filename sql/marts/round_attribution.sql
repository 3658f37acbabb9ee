-- GPU time of every round by phase, draft step and category. The exclusive times of a round and
-- its idle time add up to its wall time, to the nanosecond.
-- Grain: one row per round, phase, draft step and category (rank, round_id, phase, draft_step, category)
-- Needs: int_attributed, int_owned
-- Columns:
--   rank INTEGER  process driving one GPU
--   round_id BIGINT  the round
--   phase VARCHAR  draft, verify, sample, commit, draft_extend, prefill or other
--   draft_step INTEGER  draft pass within the round; NULL outside draft passes
--   category VARCHAR  what the activities do
--   kernels BIGINT  activities that started in the round
--   sum_ns BIGINT  raw durations of those activities, overlap counted twice
--   exclusive_ns BIGINT  time charged to them alone within the round
WITH started AS (
  SELECT
    rank, round_id, phase, draft_step, category,
    1 AS kernels,
    end_ns - start_ns AS sum_ns,
    exclusive_ns - carried_ns AS exclusive_ns,
  FROM int_attributed
  WHERE round_id IS NOT NULL
),
-- what started earlier and still ran when the round began
carried AS (
  SELECT
    o.rank, o.round_id, coalesce(a.phase, 'other') AS phase, a.draft_step, a.category,
    0 AS kernels,
    0 AS sum_ns,
    o.exclusive_ns,
  FROM (SELECT * FROM int_attributed WHERE carried_ns > 0) AS a
  JOIN int_owned AS o USING (activity_id)
  WHERE o.round_id IS NOT NULL AND o.round_id IS DISTINCT FROM a.round_id
),
together AS (
  SELECT * FROM started
  UNION ALL
  SELECT * FROM carried
)
SELECT
  rank,
  round_id,
  phase,
  draft_step,
  category,
  sum(kernels)::BIGINT AS kernels,
  sum(sum_ns)::BIGINT AS sum_ns,
  sum(exclusive_ns)::BIGINT AS exclusive_ns,
FROM together
GROUP BY ALL
