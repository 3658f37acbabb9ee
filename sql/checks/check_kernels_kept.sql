-- Every kernel of the store must appear in the attribution exactly once.
-- Grain: one row, if the counts differ
-- Needs: kernel_attribution, stg_kernels
-- Columns:
--   captured BIGINT  kernels in the store
--   attributed BIGINT  kernels in the attribution
SELECT captured, attributed
FROM (SELECT count(*) AS captured FROM stg_kernels)
CROSS JOIN (SELECT count(*) AS attributed FROM kernel_attribution)
WHERE captured <> attributed
