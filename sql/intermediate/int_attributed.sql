-- Every GPU activity with its round, phase, draft step, matrix and exclusive time.
-- Grain: one row per GPU activity (activity_id)
-- Needs: int_activities, int_activity_phases, int_pass_steps, int_matrices, int_owned, int_rounds
-- Kept: table
-- Columns:
--   activity_id BIGINT  the activity
--   rank INTEGER  process driving one GPU
--   kind VARCHAR  kernel, memory_op or graph_span
--   source_id BIGINT  id within its own table
--   name_id INTEGER  kernel name; NULL for other kinds
--   start_ns BIGINT  start of execution
--   end_ns BIGINT  end of execution
--   round_id BIGINT  round in which it started; NULL outside all rounds
--   phase VARCHAR  phase of the round; NULL outside all rounds
--   draft_step INTEGER  draft pass within the round
--   category VARCHAR  what it does
--   subcategory VARCHAR  finer kind
--   replay_id BIGINT  graph replay
--   launch_id BIGINT  launching API call
--   layer BIGINT  layer of a labelled GEMM
--   matrix VARCHAR  weight matrix that a GEMM reads
--   exclusive_ns BIGINT  time that it alone is charged for
--   carried_ns BIGINT  the part of exclusive_ns that falls into a later round
WITH located AS (
  SELECT
    a.activity_id,
    if(a.start_ns < rounds.end_ns, rounds.round_id, NULL) AS round_id,
  FROM int_activities AS a
  ASOF JOIN int_rounds AS rounds ON a.rank = rounds.rank AND a.start_ns >= rounds.start_ns
),
owned AS (
  SELECT
    int_owned.activity_id,
    sum(int_owned.exclusive_ns)::BIGINT AS exclusive_ns,
    coalesce(sum(int_owned.exclusive_ns) FILTER (
      WHERE int_owned.round_id IS DISTINCT FROM located.round_id
    ), 0)::BIGINT AS carried_ns,
  FROM int_owned
  LEFT JOIN located USING (activity_id)
  GROUP BY int_owned.activity_id
)
SELECT
  a.activity_id,
  a.rank,
  a.kind,
  a.source_id,
  a.name_id,
  a.start_ns,
  a.end_ns,
  located.round_id,
  if(located.round_id IS NULL, NULL, phases.phase) AS phase,
  if(located.round_id IS NOT NULL AND phases.phase IN ('draft', 'draft_extend'),
    steps.draft_step, NULL) AS draft_step,
  a.category,
  a.subcategory,
  a.replay_id,
  a.launch_id,
  matrices.layer,
  matrices.matrix,
  coalesce(owned.exclusive_ns, 0) AS exclusive_ns,
  coalesce(owned.carried_ns, 0) AS carried_ns,
FROM int_activities AS a
LEFT JOIN located USING (activity_id)
LEFT JOIN int_activity_phases AS phases USING (activity_id)
LEFT JOIN int_pass_steps AS steps ON steps.pass_id = phases.latest_pass_id
LEFT JOIN int_matrices AS matrices USING (activity_id)
LEFT JOIN owned USING (activity_id)
