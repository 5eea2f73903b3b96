{#- Without CAST, MySQL gives the columns the default '', and tools that introspect the schema write code with a syntax error. -#}
CREATE OR REPLACE
{%- if let Some(definer) = package.options.definer.as_ref() %}
  DEFINER = {{ definer }}
{%- endif %}
  SQL SECURITY {{ package.options.security.sql() }}
  VIEW {{ package.package }} AS
SELECT CAST({{ VERSION|sql_string }} AS CHAR CHARSET utf8mb4) AS version,
       CAST({{ package.options.kind.name()|sql_string }} AS CHAR CHARSET utf8mb4) AS package,
       CAST({{ package.options.key|sql_string }} AS CHAR CHARSET utf8mb4) AS key_columns,
       CAST({{ package.options.slots|sql_string }} AS CHAR CHARSET utf8mb4) AS slots,
       {{ package.options.setup_slots() }} AS default_slots,
       CAST({{ package.options.pick|sql_string }} AS CHAR CHARSET utf8mb4) AS pick,
       CAST({{ package.options.table.name()|sql_string }} AS CHAR CHARSET utf8mb4) AS table_name,
       CAST({{ package.options.prefix.name()|sql_string }} AS CHAR CHARSET utf8mb4) AS prefix,
       CAST({{ package.options.collation|sql_string }} AS CHAR CHARSET utf8mb4) AS collation_name,
       CAST({{ package.options.security|sql_string }} AS CHAR CHARSET utf8mb4) AS security,
       CAST({% if let Some(definer) = package.options.definer.as_ref() %}{{ definer.plain()|sql_string }}{% else %}NULL{% endif %} AS CHAR(288) CHARSET utf8mb4) AS definer,
       CAST({{ package.options.servers|sql_string }} AS CHAR CHARSET utf8mb4) AS servers,
       CAST({{ package.options.arguments()|sql_string }} AS CHAR CHARSET utf8mb4) AS arguments;
