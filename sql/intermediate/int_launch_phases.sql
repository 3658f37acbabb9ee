-- The phase range in which a launch was made: the innermost one open on its thread.
-- GPU work belongs to a range through its launch, never through wall-clock overlap.
-- Grain: one row per launch inside a phase range (launch_id)
-- Needs: int_launches, int_phase_ranges
-- Kept: table
-- Columns:
--   launch_id BIGINT  the launching API call
--   range_id BIGINT  innermost phase range
--   phase VARCHAR  its phase, with decode and forward resolved
WITH stretches AS (
  SELECT * FROM flatten_ranges('int_phase_ranges') WHERE range_id IS NOT NULL
),
-- SGLang prints step[DECODE] around draft forwards too; they are drafts if anything is verified
speculation AS (
  SELECT coalesce(bool_or(phase = 'verify'), FALSE) AS is_speculative FROM int_phase_ranges
)
SELECT
  launches.launch_id,
  stretches.range_id,
  CASE ranges.phase
    WHEN 'forward' THEN 'verify'
    WHEN 'decode' THEN if(speculation.is_speculative, 'draft', 'verify')
    ELSE ranges.phase
  END AS phase,
FROM int_launches AS launches
ASOF JOIN stretches
  ON launches.process_id = stretches.process_id
  AND launches.thread_id = stretches.thread_id
  AND launches.launch_start_ns >= stretches.start_ns
JOIN int_phase_ranges AS ranges ON ranges.range_id = stretches.range_id
CROSS JOIN speculation
WHERE launches.launch_start_ns < stretches.end_ns
