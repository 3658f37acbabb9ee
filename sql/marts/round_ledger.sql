-- Measured against predicted, per round and term. A term that only one side knows has NULL on
-- the other.
-- Grain: one row per round and term (rank, round_id, term)
-- Needs: rounds, round_terms, model_terms
-- Columns:
--   rank INTEGER  process driving one GPU
--   round_id BIGINT  the round
--   term VARCHAR  line of the ledger
--   floor_ns BIGINT  bytes that must be read at the datasheet bandwidth; NULL without a model
--   expected_ns BIGINT  what good software reaches; NULL without a model
--   measured_ns BIGINT  exclusive or idle time; 0 when nothing of the term ran
WITH lines AS (
  SELECT rank, round_id, term FROM round_terms
  UNION
  SELECT rounds.rank, rounds.round_id, model_terms.term FROM rounds CROSS JOIN model_terms
)
SELECT
  lines.rank,
  lines.round_id,
  lines.term,
  model_terms.floor_ns,
  model_terms.expected_ns,
  coalesce(round_terms.measured_ns, 0) AS measured_ns,
FROM lines
LEFT JOIN round_terms USING (rank, round_id, term)
LEFT JOIN model_terms USING (term)
