-- Rounds: from one anchor to the next. After the last anchor a round is kept only if it is
-- complete; it is open, since nothing shows when the next would have started.
-- Grain: one row per round (rank, round_id)
-- Needs: int_pass_phases, int_activities, int_round_evidence
-- Kept: table
-- Columns:
--   rank INTEGER  process driving one GPU
--   round_id BIGINT  0, 1, 2 … per rank
--   start_ns BIGINT  start of the anchor's first activity
--   end_ns BIGINT  start of the next anchor, or end of the last activity of an open round
--   is_open BOOLEAN  no next anchor
--   verifies BIGINT  target passes
--   drafts BIGINT  draft passes, the extending one included
--   prefills BIGINT  passes of a prompt
WITH anchors AS (
  SELECT
    passes.rank,
    row_number() OVER line - 1 AS round_id,
    a.start_ns,
    lead(a.start_ns) OVER line AS next_start_ns,
  FROM int_pass_phases AS passes
  JOIN int_activities AS a ON a.activity_id = passes.first_activity_id
  JOIN int_round_evidence AS evidence ON evidence.rank = passes.rank
  WHERE passes.is_anchor AND evidence.evidence IS NOT NULL
  WINDOW line AS (PARTITION BY passes.rank ORDER BY passes.pass_id)
),
last_activity AS (
  SELECT rank, max(end_ns) AS end_ns
  FROM int_activities
  GROUP BY rank
),
numbered AS (
  SELECT
    passes.rank,
    passes.phase,
    passes.ends_cut,
    count(*) FILTER (WHERE passes.is_anchor) OVER (
      PARTITION BY passes.rank ORDER BY passes.pass_id
    ) - 1 AS round_id,
  FROM int_pass_phases AS passes
),
contents AS (
  SELECT
    rank,
    round_id,
    count(*) FILTER (WHERE phase = 'verify') AS verifies,
    count(*) FILTER (WHERE phase IN ('draft', 'draft_extend')) AS drafts,
    count(*) FILTER (WHERE phase = 'prefill') AS prefills,
    bool_or(ends_cut) AS ends_cut,
  FROM numbered
  GROUP BY rank, round_id
),
usual AS (
  SELECT contents.rank, mode(drafts ORDER BY drafts) AS drafts
  FROM contents
  JOIN anchors USING (rank, round_id)
  WHERE anchors.next_start_ns IS NOT NULL
  GROUP BY contents.rank
)
SELECT
  anchors.rank,
  anchors.round_id,
  anchors.start_ns,
  coalesce(anchors.next_start_ns, last_activity.end_ns) AS end_ns,
  anchors.next_start_ns IS NULL AS is_open,
  contents.verifies,
  contents.drafts,
  contents.prefills,
FROM anchors
JOIN contents USING (rank, round_id)
JOIN last_activity USING (rank)
LEFT JOIN usual USING (rank)
WHERE
  anchors.next_start_ns IS NOT NULL
  OR (contents.verifies > 0 AND contents.drafts = usual.drafts AND NOT contents.ends_cut)
