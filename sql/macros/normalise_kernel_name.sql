CREATE OR REPLACE MACRO normalise_kernel_name(name) AS (lower(name))
