-- The ledger's measured side: wall time of every round split into terms that add up to it.
-- Draft passes are one term whatever runs in them; work between phases is `other`.
-- Grain: one row per round and term (rank, round_id, term)
-- Needs: round_attribution, round_idle
-- Columns:
--   rank INTEGER  process driving one GPU
--   round_id BIGINT  the round
--   term VARCHAR  weights, attention, gdn, collective, draft, sampling, elementwise, copy, unclassified, other or idle
--   measured_ns BIGINT  exclusive time, or idle time
WITH terms AS (
  SELECT
    rank,
    round_id,
    CASE
      WHEN phase IN ('draft', 'draft_extend') THEN 'draft'
      WHEN category IN ('memcpy', 'memset') THEN 'copy'
      WHEN category = 'unclassified' THEN 'unclassified'
      WHEN phase = 'sample' THEN 'sampling'
      WHEN phase = 'commit' THEN 'gdn'
      WHEN phase <> 'verify' THEN 'other'
      WHEN category = 'gemm' THEN 'weights'
      WHEN category IN ('attention', 'kvcache') THEN 'attention'
      WHEN category IN ('gdn', 'collective') THEN category
      ELSE 'elementwise'
    END AS term,
    exclusive_ns AS ns,
  FROM round_attribution
  UNION ALL
  SELECT rank, round_id, 'idle', idle_ns
  FROM round_idle
)
SELECT rank, round_id, term, sum(ns)::BIGINT AS measured_ns
FROM terms
GROUP BY ALL
