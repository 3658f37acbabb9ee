-- Ranges whose names say which phase of a round they enclose.
-- Grain: one row per range (range_id)
-- Needs: stg_ranges, range_rules
-- Kept: table
-- Columns:
--   range_id BIGINT  the range
--   process_id INTEGER  process that opened it
--   thread_id BIGINT  thread that opened it
--   start_ns BIGINT  start on the host
--   end_ns BIGINT  end on the host
--   phase VARCHAR  draft, verify, sample, commit, draft_extend, prefill; or decode, forward
WITH phases AS (
  SELECT names.name, range_rules.phase
  FROM (SELECT DISTINCT name FROM stg_ranges) AS names
  JOIN range_rules ON regexp_matches(names.name, range_rules.pattern)
  QUALIFY row_number() OVER (PARTITION BY names.name ORDER BY range_rules.rule_id) = 1
)
SELECT
  stg_ranges.range_id,
  stg_ranges.process_id,
  stg_ranges.thread_id,
  stg_ranges.start_ns,
  stg_ranges.end_ns,
  phases.phase,
FROM stg_ranges
JOIN phases USING (name)
