-- Exclusive time: which activity owns how much of which round. Within a priority the earliest
-- started owns an instant, so each activity owns one stretch at most; from that stretch goes what
-- higher priorities cover, read off their running union at both ends. Stretches that cross a
-- round boundary are cut there.
-- Grain: one row per activity and round in which it owns time (activity_id, round_id)
-- Needs: int_sweep, int_rounds
-- Kept: table
-- Columns:
--   activity_id BIGINT  the activity
--   rank INTEGER  process driving one GPU
--   round_id BIGINT  the round; NULL outside all rounds
--   exclusive_ns BIGINT  time that it alone is charged for
WITH stretches AS (
  SELECT activity_id, rank, priority, owned_from_ns AS from_ns, end_ns AS to_ns
  FROM int_sweep
  WHERE owned_from_ns < end_ns
),
-- Rounds of a rank are contiguous; the stretch after the last one is in no round.
periods AS (
  SELECT
    rank,
    round_id,
    start_ns,
    end_ns,
  FROM int_rounds
  UNION ALL
  SELECT rank, NULL, max(end_ns), NULL
  FROM int_rounds
  GROUP BY rank
),
located AS (
  SELECT
    stretches.*,
    periods.round_id,
    periods.start_ns IS NULL AS is_before,
    periods.end_ns AS period_end_ns,
  FROM stretches
  ASOF LEFT JOIN periods
    ON stretches.rank = periods.rank AND stretches.from_ns >= periods.start_ns
),
first_rounds AS (
  SELECT rank, min(start_ns) AS start_ns
  FROM int_rounds
  GROUP BY rank
),
bounded AS (
  SELECT
    located.* EXCLUDE (is_before, period_end_ns),
    if(is_before, first_rounds.start_ns, period_end_ns) AS period_end_ns,
  FROM located
  LEFT JOIN first_rounds USING (rank)
),
pieces AS (
  SELECT
    activity_id,
    rank,
    priority,
    round_id,
    from_ns,
    least(to_ns, coalesce(period_end_ns, to_ns)) AS to_ns,
  FROM bounded
  UNION ALL
  -- the few that cross a boundary go on in the periods after it
  SELECT
    bounded.activity_id,
    bounded.rank,
    bounded.priority,
    periods.round_id,
    periods.start_ns,
    least(bounded.to_ns, coalesce(periods.end_ns, bounded.to_ns)),
  FROM (SELECT * FROM bounded WHERE to_ns > period_end_ns) AS bounded
  JOIN periods
    ON periods.rank = bounded.rank
    AND periods.start_ns >= bounded.period_end_ns
    AND periods.start_ns < bounded.to_ns
),
-- Running measure of what outranks each priority: compute for collectives, both for copies.
covers AS (
  SELECT
    rank,
    1::TINYINT AS priority,
    owned_from_ns AS start_ns,
    end_ns,
    sum(end_ns - owned_from_ns) OVER (PARTITION BY rank ORDER BY activity_id) AS until_end_ns,
  FROM int_sweep
  WHERE priority = 0 AND owned_from_ns < end_ns
  UNION ALL
  SELECT
    rank,
    2::TINYINT,
    end_ns - covered_01_ns,
    end_ns,
    sum(covered_01_ns) OVER (PARTITION BY rank ORDER BY activity_id),
  FROM int_sweep
  WHERE covered_01_ns > 0
),
outranked AS (
  SELECT
    pieces.activity_id,
    pieces.rank,
    pieces.round_id,
    pieces.to_ns - pieces.from_ns AS owned_ns,
    coalesce(upper.until_end_ns - greatest(0, upper.end_ns - pieces.to_ns), 0)
    - coalesce(lower.until_end_ns - greatest(0, lower.end_ns - pieces.from_ns), 0) AS covered_ns,
  FROM (SELECT * FROM pieces WHERE priority > 0) AS pieces
  ASOF LEFT JOIN covers AS lower
    ON pieces.rank = lower.rank
    AND pieces.priority = lower.priority
    AND pieces.from_ns >= lower.start_ns
  ASOF LEFT JOIN covers AS upper
    ON pieces.rank = upper.rank
    AND pieces.priority = upper.priority
    AND pieces.to_ns >= upper.start_ns
)
SELECT activity_id, rank, round_id, to_ns - from_ns AS exclusive_ns
FROM pieces
WHERE priority = 0
UNION ALL
SELECT activity_id, rank, round_id, (owned_ns - covered_ns)::BIGINT
FROM outranked
WHERE owned_ns > covered_ns
