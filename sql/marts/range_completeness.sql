-- How many ranges that launched something can be projected to the GPU.
-- Grain: one row
-- Needs: int_launch_ranges
-- Columns:
--   ranges_with_launch BIGINT  ranges that are the innermost one of at least one launch
--   ranges_with_gpu BIGINT  of these, with GPU activity of a launch
SELECT
  count(DISTINCT range_id) AS ranges_with_launch,
  count(DISTINCT range_id) FILTER (WHERE rank IS NOT NULL) AS ranges_with_gpu,
FROM int_launch_ranges
