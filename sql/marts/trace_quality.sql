-- What to know before trusting the numbers: one line per check and rank.
-- Grain: one row per check and rank (check, rank)
-- Needs: completeness, ranks, int_round_evidence, int_round_order, int_attributed
-- Columns:
--   check VARCHAR  what was checked
--   rank INTEGER  process driving one GPU
--   status VARCHAR  ok, warning, poor or absent
--   detail VARCHAR  what was found
WITH unclassified AS (
  SELECT
    rank,
    (coalesce(sum(end_ns - start_ns) FILTER (WHERE category = 'unclassified'), 0))::BIGINT AS ns,
    sum(end_ns - start_ns)::BIGINT AS all_ns,
  FROM int_attributed
  WHERE kind = 'kernel'
  GROUP BY rank
)
SELECT
  'eager_launches_with_kernel' AS "check",
  rank,
  CASE
    WHEN eager_launches = 0 THEN 'absent'
    WHEN 50 * eager_recorded >= 49 * eager_launches THEN 'ok'
    ELSE 'poor'
  END AS status,
  format('{} of {} kernel launches have their kernel', eager_recorded, eager_launches) AS detail,
FROM completeness
UNION ALL
SELECT
  'graph_launches_with_kernels',
  rank,
  CASE
    WHEN graph_launches = 0 THEN 'absent'
    WHEN 50 * graph_recorded >= 49 * graph_launches THEN 'ok'
    ELSE 'poor'
  END,
  format('{} of {} graph launches have GPU activity', graph_recorded, graph_launches),
FROM completeness
UNION ALL
SELECT
  'replays_complete',
  rank,
  CASE
    WHEN replays = 0 THEN 'absent'
    WHEN 20 * replays_full >= 19 * replays THEN 'ok'
    WHEN 5 * replays_full >= 4 * replays THEN 'warning'
    ELSE 'poor'
  END,
  format('{} of {} replays have all kernels of their graph', replays_full, replays),
FROM completeness
UNION ALL
SELECT
  'graph_nodes',
  rank,
  if(opaque_replays > 0, 'poor', 'ok'),
  if(
    opaque_replays > 0,
    format(
      'graph-level capture: the kernels of {} replays are hidden; a replay takes {:.3f} ms',
      opaque_replays, graph_span_ns / 1e6 / opaque_replays
    ),
    'kernels inside graphs are visible'
  ),
FROM completeness
JOIN ranks USING (rank)
UNION ALL
SELECT
  'round_evidence',
  e.rank,
  if(e.evidence IS NULL, 'absent', 'ok'),
  coalesce(
    'no rounds: ' || e.refused_because,
    format('rounds rest on {}, draft order on {}', e.evidence, o.shown_by)
  ),
FROM int_round_evidence AS e
LEFT JOIN int_round_order AS o USING (rank)
UNION ALL
SELECT
  'unclassified_time',
  rank,
  CASE WHEN 200 * ns <= all_ns THEN 'ok' WHEN 20 * ns <= all_ns THEN 'warning' ELSE 'poor' END,
  format('{:.2f} % of kernel time has no class', 100.0 * ns / nullif(all_ns, 0)),
FROM unclassified
