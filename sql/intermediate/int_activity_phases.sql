-- The phase and draft step of every activity. Inside a pass the pass decides, with the sampling
-- that ends it set apart; between passes the pass before and the kernels themselves decide.
-- Grain: one row per GPU activity (activity_id)
-- Needs: int_activities, int_segments, int_passes, int_pass_phases
-- Kept: table
-- Columns:
--   activity_id BIGINT  the activity
--   pass_id BIGINT  forward pass that it is part of; NULL between passes
--   phase VARCHAR  draft, verify, sample, commit, draft_extend, prefill or other
--   latest_pass_id BIGINT  the pass itself or the last one that began before; NULL before the first
WITH placed AS (
  SELECT
    s.activity_id,
    s.rank,
    s.replay_id,
    s.segment,
    s.mark,
    s.range_phase,
    -- sampling and copies behind an eager pass are judged by what they do, below
    CASE
      WHEN s.replay_id = 0 AND (s.mark = 'break' OR a.kind = 'memory_op') THEN NULL
      WHEN s.activity_id >= p.first_activity_id THEN p.pass_id
    END AS own_pass_id,
  FROM int_segments AS s
  JOIN int_activities AS a USING (activity_id)
  LEFT JOIN int_passes AS p
    ON p.rank = s.rank AND p.replay_id = s.replay_id AND p.segment = s.segment
),
-- What a replay runs before its first or after its last pass belongs to that pass.
in_replays AS (
  SELECT
    *,
    CASE WHEN replay_id > 0 THEN coalesce(
      last_value(own_pass_id IGNORE NULLS) OVER (
        lane ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ),
      first_value(own_pass_id IGNORE NULLS) OVER (
        lane ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
      )
    ) ELSE own_pass_id END AS replay_pass_id,
  FROM placed
  WINDOW lane AS (PARTITION BY rank, replay_id ORDER BY activity_id)
),
in_order AS (
  SELECT
    *,
    max(replay_pass_id) OVER (
      PARTITION BY rank ORDER BY activity_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS latest_pass_id,
  FROM in_replays
),
described AS (
  SELECT
    in_order.activity_id,
    in_order.replay_pass_id,
    in_order.latest_pass_id,
    in_order.range_phase,
    -- an lm_head that is launched alone, and what follows it up to the sampling
    in_order.replay_pass_id IS NULL AND in_order.mark = 'gemm' AS is_lone_gemm,
    in_order.mark = 'break' AS is_break,
    a.category = 'gdn' AND a.subcategory = 'state_commit' AS is_commit,
    a.category = 'sampling'
      OR (a.category = 'spec' AND regexp_matches(a.subcategory, 'verify|rejection')) AS is_sampling,
    a.category = 'sampling'
      OR (a.category = 'spec' AND a.subcategory = 'draft_topk') AS is_draft_tail,
    phases.phase AS pass_phase,
    latest.phase AS latest_phase,
  FROM in_order
  JOIN int_activities AS a USING (activity_id)
  LEFT JOIN int_pass_phases AS phases ON phases.pass_id = in_order.replay_pass_id
  LEFT JOIN int_pass_phases AS latest ON latest.pass_id = in_order.latest_pass_id
),
-- Landmarks among the activities that follow each pass.
tails AS (
  SELECT
    latest_pass_id,
    max(activity_id) FILTER (WHERE replay_pass_id IS NOT NULL) AS last_in_pass,
    max(activity_id) FILTER (WHERE is_lone_gemm) AS last_lone_gemm,
    min(activity_id) FILTER (WHERE is_break) AS first_break,
    min(activity_id) FILTER (WHERE is_commit) AS first_commit,
    max(activity_id) FILTER (WHERE is_commit) AS last_commit,
    max(activity_id) FILTER (WHERE is_sampling) AS last_sampling,
    max(activity_id) FILTER (WHERE is_draft_tail) AS last_draft_tail,
  FROM described
  WHERE latest_pass_id IS NOT NULL
  GROUP BY latest_pass_id
)
SELECT
  described.activity_id,
  described.replay_pass_id AS pass_id,
  CASE
    WHEN described.pass_phase = 'verify' THEN if(described.is_break, 'sample', 'verify')
    WHEN described.pass_phase IS NOT NULL THEN described.pass_phase
    WHEN described.range_phase IN ('sample', 'commit') THEN described.range_phase
    WHEN described.activity_id < tails.last_in_pass THEN described.latest_phase
    WHEN described.activity_id <= tails.last_lone_gemm THEN described.latest_phase
    WHEN described.activity_id < tails.first_break AND tails.last_lone_gemm IS NOT NULL
      THEN described.latest_phase
    WHEN described.latest_phase = 'verify' THEN CASE
      WHEN described.is_commit THEN 'commit'
      WHEN described.activity_id < tails.first_commit THEN 'sample'
      WHEN described.activity_id < tails.last_commit THEN 'commit'
      WHEN tails.first_commit IS NULL AND described.activity_id <= tails.last_sampling THEN 'sample'
      ELSE 'other'
    END
    WHEN described.activity_id <= tails.last_draft_tail THEN described.latest_phase
    ELSE 'other'
  END AS phase,
  described.latest_pass_id,
FROM described
LEFT JOIN tails USING (latest_pass_id)
