-- Distinct names that kernels carry, in their canonical spelling.
-- Grain: one row per kernel name (name_id)
-- Needs: kernels, names
-- Columns:
--   name_id INTEGER  name in the store
--   name VARCHAR  as captured
--   normal_name VARCHAR  one spelling over Nsight, Kineto, ROCm and Triton
SELECT
  name_id,
  name,
  normalise_kernel_name(name) AS normal_name,
FROM names
WHERE name_id IN (SELECT DISTINCT name_id FROM kernels)
