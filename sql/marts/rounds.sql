-- Decode rounds of every rank, with the evidence they rest on.
-- Grain: one row per round (rank, round_id)
-- Needs: int_rounds, int_round_flags, int_round_evidence, int_round_order
-- Columns:
--   rank INTEGER  process driving one GPU
--   round_id BIGINT  0, 1, 2 … per rank
--   kind VARCHAR  speculative or plain
--   start_ns BIGINT  start of the anchor's first activity
--   end_ns BIGINT  start of the next anchor
--   wall_ns BIGINT  end_ns - start_ns
--   steady BOOLEAN  counted in the means
--   excluded_because VARCHAR  why it is not steady; NULL when it is
--   evidence VARCHAR  ranges, graphs or kernels
--   draft_passes BIGINT  forward passes of the draft model
--   draft_order VARCHAR  plain, verify_first, draft_first or extend_draft
SELECT
  int_rounds.rank,
  int_rounds.round_id,
  if(int_rounds.drafts > 0, 'speculative', 'plain') AS kind,
  int_rounds.start_ns,
  int_rounds.end_ns,
  int_rounds.end_ns - int_rounds.start_ns AS wall_ns,
  flags.excluded_because IS NULL AS steady,
  flags.excluded_because,
  int_round_evidence.evidence,
  int_rounds.drafts AS draft_passes,
  int_round_order.draft_order,
FROM int_rounds
JOIN int_round_flags AS flags USING (rank, round_id)
JOIN int_round_evidence USING (rank)
JOIN int_round_order USING (rank)
