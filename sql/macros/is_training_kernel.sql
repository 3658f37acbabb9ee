-- True for kernels that only training runs: gradients and optimisers.
CREATE OR REPLACE MACRO is_training_kernel(normal_name) AS (
  regexp_matches(
    coalesce(normal_name, ''),
    '(?i)(backward|[_:]bwd|bwd_|wgrad|dgrad|adamw?_|fusedadam|optimizer|batch_norm_.*train)'
  )
)
