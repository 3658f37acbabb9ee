-- One canonical lower-case spelling of a kernel name over Nsight, Kineto, c++filt, ROCm and Triton.
-- What the formats print differently, and no class depends on, goes: return types, parameter
-- lists, casts of literals, const, anonymous namespaces, lambda numbers, suffixes of clones. A
-- wrapper that only launches its template argument is peeled off, so that the name begins with
-- the function that says what is done. Names that stayed mangled are cut into their words.
-- Every step is one regular expression of RE2: linear, also for hostile names.

-- Drops parenthesised text, innermost first, five levels deep, and what truncation left open.
CREATE OR REPLACE MACRO _without_parameters(name) AS (
  (name)
  .regexp_replace('\([^()]*\)', '', 'g')
  .regexp_replace('\([^()]*\)', '', 'g')
  .regexp_replace('\([^()]*\)', '', 'g')
  .regexp_replace('\([^()]*\)', '', 'g')
  .regexp_replace('\([^()]*\)', '', 'g')
  .regexp_replace('\([^()]*$', '')
  .regexp_replace('[()]', '', 'g')
);

-- Mangled identifiers carry their length before them. Lengths of one and two are left, and what
-- follows an underscore: the digits of `conv1d`, `2stage` and `shuffle_4bit` are part of a word.
CREATE OR REPLACE MACRO _without_mangling(name) AS (
  if(
    regexp_matches(name, '^_+z(n[kr]*(st|s_)?)?l?[0-9]'),
    name
    .replace('12_global__n_1', '')
    .regexp_replace('([^0-9_]|s[0-9]?_)(?:[3-9]|[1-9][0-9]+)([a-z_])', '\1::\2', 'g')
    .regexp_replace('^_+z[nkr]*(st|s_)?l?[0-9]*(::)?', ''),
    name
  )
);

CREATE OR REPLACE MACRO normalise_kernel_name(name) AS (
  _without_parameters(
    _without_mangling(
      (name)
      .substring(1, 4000)
      .lower()
      .regexp_replace('\s+', ' ', 'g')
      .trim()
      .regexp_replace('( ?\[clone [^\]]*\]|\.kd)+$', '')
    )
    .regexp_replace('(\(anonymous namespace\)|<unnamed>|\{anonymous\})(::)?', '', 'g')
    .regexp_replace('^(typename )?std::enable_if(_t)?<.*?>(::type)? ', '')
    .regexp_replace('^((static|inline|__global__|void) )+', '')
    .regexp_replace('\(bool\)1', 'true', 'g')
    .regexp_replace('\(bool\)0', 'false', 'g')
    .regexp_replace('\b([0-9]+)(ull|ul|ll|u|l)\b', '\1', 'g')
    .regexp_replace('[\[{]lambda\([^()]*\)( \(instance [0-9]+\)\]|#[0-9]+\})', 'lambda', 'g')
    .regexp_replace('&\(', '&', 'g')
  )
  .regexp_replace('\b(const|__restrict__)\b', '', 'g')
  .regexp_replace(' *([<>,*&:]) *', '\1', 'g')
  .regexp_replace('_0[0-9ce]*d[0-9cde]*$', '')
  .regexp_replace(
    '^((([a-z0-9_]+::)*(device_kernel|global_kernel|kernel2|kentry\w*|enable_\w+)'
    || '|((cutlass|cute|ck|ck_tile)::)?kernel)<(([0-9]+|true|false|[a-z0-9_:]*gfx\w*),)*)+',
    ''
  )
  .trim()
);
