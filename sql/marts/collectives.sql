-- Collectives paired over ranks: what the transfer took and how long each rank waited for others.
-- The shortest duration among the ranks is the transfer; the rest of a rank's kernel is waiting.
-- Grain: one row per collective and rank (collective_id, rank)
-- Needs: int_collectives, int_attributed
-- Columns:
--   collective_id BIGINT  equal on all ranks that took part
--   rank INTEGER  process driving one GPU
--   round_id BIGINT  round of this rank in which it started; NULL outside all rounds
--   duration_ns BIGINT  duration of the kernel on this rank
--   transfer_ns BIGINT  shortest duration among the ranks; NULL when not recorded on every rank
--   wait_ns BIGINT  duration_ns - transfer_ns
--   operation VARCHAR  allreduce, allgather, …
--   phase VARCHAR  phase of the round
--   kernel_id BIGINT  the kernel in `kernels`
WITH ranks AS (
  SELECT count(DISTINCT rank) AS ranks FROM int_collectives
),
paired AS (
  SELECT
    *,
    if(number IS NULL, activity_id, NULL) AS alone,
    CASE WHEN number IS NOT NULL AND ranks.ranks > 1
      AND count(*) OVER (PARTITION BY operation, number) = ranks.ranks
      THEN min(duration_ns) OVER (PARTITION BY operation, number)
    END AS transfer_ns,
  FROM int_collectives
  CROSS JOIN ranks
)
SELECT
  dense_rank() OVER (ORDER BY paired.operation, paired.number, paired.alone) - 1 AS collective_id,
  paired.rank,
  a.round_id,
  paired.duration_ns,
  paired.transfer_ns,
  paired.duration_ns - paired.transfer_ns AS wait_ns,
  paired.operation,
  a.phase,
  a.source_id AS kernel_id,
FROM paired
JOIN int_attributed AS a USING (activity_id)
