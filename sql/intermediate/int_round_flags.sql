-- Which rounds are steady, and why the others are not.
-- Grain: one row per round (rank, round_id)
-- Needs: int_rounds, int_replays
-- Kept: table
-- Columns:
--   rank INTEGER  process driving one GPU
--   round_id BIGINT  0, 1, 2 … per rank
--   excluded_because VARCHAR  open_end, no_verify, many_verifies, prefill, draft_count, other_graph, incomplete or warm_up; NULL for steady rounds
WITH verify_graphs AS (
  SELECT
    rounds.rank,
    rounds.round_id,
    arg_max(replays.signature, replays.kernels) AS signature,
    max(replays.kernels) AS kernels,
    max(replays.layers) AS layers,
  FROM int_replays AS replays
  ASOF JOIN int_rounds AS rounds
    ON replays.rank = rounds.rank AND replays.start_ns >= rounds.start_ns
  WHERE replays.start_ns < rounds.end_ns
  GROUP BY rounds.rank, rounds.round_id
),
usual AS (
  SELECT
    int_rounds.rank,
    mode(drafts ORDER BY drafts) AS drafts,
    mode(verify_graphs.signature ORDER BY verify_graphs.signature) AS signature,
    mode(verify_graphs.kernels ORDER BY verify_graphs.kernels) AS kernels,
    mode(verify_graphs.layers ORDER BY verify_graphs.layers) AS layers,
    median(int_rounds.end_ns - int_rounds.start_ns) AS wall_ns,
  FROM int_rounds
  LEFT JOIN verify_graphs USING (rank, round_id)
  WHERE NOT is_open AND verifies = 1 AND prefills = 0
  GROUP BY int_rounds.rank
),
judged AS (
  SELECT
    int_rounds.*,
    CASE
      WHEN is_open THEN 'open_end'
      WHEN verifies = 0 THEN 'no_verify'
      WHEN verifies > 1 THEN 'many_verifies'
      WHEN prefills > 0 THEN 'prefill'
      WHEN int_rounds.drafts <> usual.drafts THEN 'draft_count'
      WHEN verify_graphs.layers < usual.layers OR (
        verify_graphs.signature = usual.signature AND verify_graphs.kernels < usual.kernels
      ) THEN 'incomplete'
      WHEN verify_graphs.signature IS DISTINCT FROM usual.signature THEN 'other_graph'
    END AS structural,
    end_ns - start_ns > 2 * usual.wall_ns AS is_slow,
  FROM int_rounds
  LEFT JOIN usual USING (rank)
  LEFT JOIN verify_graphs USING (rank, round_id)
)
SELECT
  rank,
  round_id,
  coalesce(
    structural,
    -- slow rounds are real, except in an unbroken run at the start
    if(bool_and(is_slow) OVER (
      PARTITION BY rank ORDER BY round_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ), 'warm_up', NULL)
  ) AS excluded_because,
FROM judged
