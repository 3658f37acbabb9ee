-- The class of every kernel name: the first rule that matches its canonical spelling.
-- Grain: one row per kernel name (name_id)
-- Needs: stg_kernel_names, kernel_rules
-- Kept: table
-- Columns:
--   name_id INTEGER  name in the store
--   name VARCHAR  as captured
--   category VARCHAR  what the kernel does; unclassified when no rule matches
--   subcategory VARCHAR  finer kind; NULL when unclassified
--   rule VARCHAR  rule that decided; NULL when unclassified
SELECT
  stg_kernel_names.name_id,
  stg_kernel_names.name,
  coalesce(kernel_rules.category, 'unclassified') AS category,
  kernel_rules.subcategory,
  kernel_rules.rule,
FROM stg_kernel_names
LEFT JOIN kernel_rules ON regexp_matches(stg_kernel_names.normal_name, kernel_rules.pattern)
QUALIFY
  row_number() OVER (PARTITION BY stg_kernel_names.name_id ORDER BY kernel_rules.rule_id) = 1
