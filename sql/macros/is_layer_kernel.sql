-- True for the kernel that does the mixing of a layer in decode, once per layer: attention or the
-- recurrent update itself, not split reductions, metadata, convolutions, gates or state copies.
CREATE OR REPLACE MACRO is_layer_kernel(category, subcategory) AS (
  (category = 'attention' AND NOT regexp_matches(
    coalesce(subcategory, ''), 'combine|metadata|index'
  ))
  OR (category = 'gdn' AND regexp_matches(coalesce(subcategory, ''), '^(recurrent|kda_rec|light)'))
)
