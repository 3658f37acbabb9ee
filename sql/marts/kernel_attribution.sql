-- Every kernel with the round, phase and matrix it belongs to and the time it is charged for.
-- Grain: one row per kernel (rank, kernel_id)
-- Needs: int_attributed, int_kernel_classes
-- Columns:
--   rank INTEGER  process driving one GPU
--   kernel_id BIGINT  the kernel in `kernels`
--   start_ns BIGINT  start of execution
--   end_ns BIGINT  end of execution
--   name VARCHAR  name as captured
--   round_id BIGINT  round in which it started; NULL outside all rounds
--   phase VARCHAR  draft, verify, sample, commit, draft_extend, prefill or other; NULL outside rounds
--   draft_step INTEGER  draft pass within the round
--   category VARCHAR  what the kernel does
--   layer BIGINT  layer of a labelled GEMM, from 0
--   matrix VARCHAR  weight matrix that a GEMM reads; NULL when its place tells nothing
--   exclusive_ns BIGINT  time that it alone is charged for
--   carried_ns BIGINT  the part of exclusive_ns that falls into a later round than its own
--   subcategory VARCHAR  finer kind
--   replay_id BIGINT  graph replay; NULL when launched alone
SELECT
  attributed.rank,
  attributed.source_id AS kernel_id,
  attributed.start_ns,
  attributed.end_ns,
  int_kernel_classes.name,
  attributed.round_id,
  attributed.phase,
  attributed.draft_step,
  attributed.category,
  attributed.layer,
  attributed.matrix,
  attributed.exclusive_ns,
  attributed.carried_ns,
  attributed.subcategory,
  attributed.replay_id,
FROM int_attributed AS attributed
JOIN int_kernel_classes USING (name_id)
WHERE attributed.kind = 'kernel'
