-- Graph replays of which only the span is known, with the time each is charged for as a whole.
-- Grain: one row per graph span (rank, graph_span_id)
-- Needs: int_attributed
-- Columns:
--   rank INTEGER  process driving one GPU
--   graph_span_id BIGINT  the span in `graph_spans`
--   start_ns BIGINT  start of execution
--   end_ns BIGINT  end of execution
--   round_id BIGINT  round in which it started; NULL outside all rounds
--   phase VARCHAR  phase of the round; NULL outside all rounds
--   category VARCHAR  always unclassified: what ran inside is hidden
--   exclusive_ns BIGINT  time that it alone is charged for
SELECT
  rank,
  source_id AS graph_span_id,
  start_ns,
  end_ns,
  round_id,
  phase,
  category,
  exclusive_ns,
FROM int_attributed
WHERE kind = 'graph_span'
