{%- import "macros.sql" as m -%}
{% if o.mariadb() -%}
BEGIN NOT ATOMIC
{%- else -%}
CREATE{{ sql.definer() }} PROCEDURE {{ package.temporary() }}()
{%- if o.definer.is_some() %}
  -- An account that may not name this definer fails here (1227), before a routine is dropped.
  SQL SECURITY INVOKER{% endif %}
BEGIN{% endif %}
{%- if !o.cluster %}
  IF
{%- if o.mariadb() %} 1 < (SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS {# -#}
    WHERE VARIABLE_NAME = 'wsrep_cluster_size') THEN
    {{ m::reject("this Galera cluster has several nodes: many calls would fail with 1213. Render it with --cluster") }}
{%- else %} EXISTS (
    SELECT * FROM performance_schema.global_variables
     WHERE (VARIABLE_NAME, VARIABLE_VALUE) = ('group_replication_single_primary_mode', 'OFF')
  ) THEN
    {{ m::reject(
      "this group has several primaries: most calls would fail at COMMIT. Render the package with --cluster") }}
{%- endif %}
  END IF;{% endif %}
{%- if let Some(column) = o.column() %}
  IF {% include "files/_column_differs.sql" %} THEN
    {{ m::reject(COLUMN_DIFFERS) }}
  END IF;
  IF {% include "files/_key_not_unique.sql" %} THEN
    {{ m::reject(KEY_NOT_UNIQUE) }}
  END IF;
  IF {% include "files/_not_kept.sql" %} THEN
    {{ m::reject(NOT_KEPT) }}
  END IF;{% endif %}
{%- if sql.replaces() %}
  IF {% include "files/_table_differs.sql" %} THEN
    {{ m::reject(TABLE_DIFFERS) }}
  END IF;{% endif %}
END
