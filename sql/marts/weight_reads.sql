-- Weight matrices as the steady rounds read them: how often, how fast, how near to the peak.
-- Bytes come from the model, and only where it demands as many reads as were found.
-- Grain: one row per rank, phase and matrix (rank, phase, matrix)
-- Needs: rounds, kernel_attribution, ranks, model_matrices, model_gpu
-- Columns:
--   rank INTEGER  process driving one GPU
--   phase VARCHAR  verify, draft or draft_extend
--   matrix VARCHAR  weight matrix
--   reads_per_round DOUBLE  reads in a mean steady round
--   bytes BIGINT  bytes of one read; NULL without a model or when the counts do not fit
--   mean_ns DOUBLE  mean duration of a read, kernels that finish it included
--   achieved_gbps DOUBLE  bytes / mean_ns
--   fraction_of_peak DOUBLE  achieved against the GPU's datasheet bandwidth
--   demanded_per_round DOUBLE  reads that the model demands; NULL without a model
WITH steady AS (
  SELECT rank, round_id FROM rounds WHERE steady
),
rounds_per_rank AS (
  SELECT rank, count(*) AS rounds FROM steady GROUP BY rank
),
reads AS (
  SELECT
    k.rank,
    k.phase,
    k.matrix,
    count(*) FILTER (WHERE NOT is_gemm_finish(k.subcategory)) AS reads,
    count(DISTINCT (k.round_id, k.draft_step)) AS passes,
    sum(k.end_ns - k.start_ns)::BIGINT AS sum_ns,
  FROM kernel_attribution AS k
  JOIN steady USING (rank, round_id)
  WHERE k.matrix IS NOT NULL AND k.phase IN ('verify', 'draft', 'draft_extend')
  GROUP BY k.rank, k.phase, k.matrix
),
demanded AS (
  SELECT
    reads.*,
    rounds_per_rank.rounds,
    m.bytes,
    m.reads_per_pass * reads.passes / rounds_per_rank.rounds AS demanded_per_round,
    coalesce(g.peak_bytes_per_s, ranks.memory_bandwidth_bytes_per_s) AS peak_bytes_per_s,
  FROM reads
  JOIN rounds_per_rank USING (rank)
  JOIN ranks USING (rank)
  LEFT JOIN model_matrices AS m
    ON m.matrix = reads.matrix AND m.module = if(reads.phase = 'verify', 'target', 'draft')
  LEFT JOIN model_gpu AS g ON TRUE
)
SELECT
  rank,
  phase,
  matrix,
  reads / rounds AS reads_per_round,
  if(reads / rounds = demanded_per_round, bytes, NULL) AS bytes,
  sum_ns / nullif(reads, 0) AS mean_ns,
  if(reads / rounds = demanded_per_round, bytes, NULL) * reads / nullif(sum_ns, 0) AS achieved_gbps,
  if(reads / rounds = demanded_per_round, bytes, NULL) * reads * 1e9
    / nullif(sum_ns, 0) / nullif(peak_bytes_per_s, 0) AS fraction_of_peak,
  demanded_per_round,
FROM demanded
