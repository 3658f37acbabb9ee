-- Which class each kernel name has and which rule gave it.
-- Grain: one row per kernel name (name)
-- Needs: int_kernel_classes
-- Columns:
--   name VARCHAR  as captured
--   category VARCHAR  what the kernel does; unclassified when no rule matches
--   subcategory VARCHAR  finer kind; NULL when unclassified
--   rule VARCHAR  rule of sql/rules/kernel_rules.csv or of the user; NULL when unclassified
SELECT
  name,
  min(category) AS category,
  min(subcategory) AS subcategory,
  min(rule) AS rule,
FROM int_kernel_classes
GROUP BY name
