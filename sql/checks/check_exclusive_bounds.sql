-- No activity may own less than nothing or more than its own duration.
-- Grain: one row per offending kernel (rank, kernel_id)
-- Needs: kernel_attribution
-- Columns:
--   rank INTEGER  process driving one GPU
--   kernel_id BIGINT  the kernel
--   exclusive_ns BIGINT  time that it is charged for
SELECT rank, kernel_id, exclusive_ns
FROM kernel_attribution
WHERE exclusive_ns < 0 OR exclusive_ns > end_ns - start_ns OR carried_ns > exclusive_ns
