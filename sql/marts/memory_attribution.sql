-- Every copy and fill with its round and phase and the time it is charged for.
-- Grain: one row per memory operation (rank, memory_op_id)
-- Needs: int_attributed
-- Columns:
--   rank INTEGER  process driving one GPU
--   memory_op_id BIGINT  the operation in `memory_ops`
--   start_ns BIGINT  start of execution
--   end_ns BIGINT  end of execution
--   round_id BIGINT  round in which it started; NULL outside all rounds
--   phase VARCHAR  phase of the round; NULL outside all rounds
--   draft_step INTEGER  draft pass within the round
--   category VARCHAR  memcpy or memset
--   exclusive_ns BIGINT  time that it alone is charged for
--   carried_ns BIGINT  the part of exclusive_ns that falls into a later round than its own
SELECT
  rank,
  source_id AS memory_op_id,
  start_ns,
  end_ns,
  round_id,
  phase,
  draft_step,
  category,
  exclusive_ns,
  carried_ns,
FROM int_attributed
WHERE kind = 'memory_op'
