CREATE OR REPLACE
{%- if let Some(definer) = package.options.definer.as_ref() %}
  DEFINER = {{ definer }}
{%- endif %}
  SQL SECURITY {{ package.options.security.sql() }}
  VIEW {{ package.package }} AS
SELECT {{ VERSION|sql_string }} AS version,
       {{ package.options.kind.name()|sql_string }} AS package,
       {{ package.options.key|sql_string }} AS key_columns,
       {{ package.options.slots|sql_string }} AS slots,
       {{ package.options.setup_slots() }} AS default_slots,
       {{ package.options.pick|sql_string }} AS pick,
       {{ package.options.table.name()|sql_string }} AS table_name,
       {{ package.options.prefix.name()|sql_string }} AS prefix,
       {{ package.options.collation|sql_string }} AS collation_name,
       {{ package.options.security|sql_string }} AS security,
       {% if let Some(definer) = package.options.definer.as_ref() %}{{ definer.plain()|sql_string }}{% else %}NULL{% endif %} AS definer,
       {{ package.options.servers|sql_string }} AS servers,
       {{ package.options.arguments()|sql_string }} AS arguments;
