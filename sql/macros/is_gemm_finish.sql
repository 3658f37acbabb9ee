-- True for the kernels that finish a GEMM that was split: they read no weights of their own.
CREATE OR REPLACE MACRO is_gemm_finish(subcategory) AS (
  regexp_matches(coalesce(subcategory, ''), 'reduce|fixup|epilogue')
);
