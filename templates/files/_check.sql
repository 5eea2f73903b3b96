{% if o.mariadb() -%}
BEGIN NOT ATOMIC
{%- else -%}
CREATE{{ sql.definer() }} PROCEDURE {{ package.temporary() }}()
{%- if o.definer.is_some() %}
  -- An account that may not name this definer fails here (1227), before a routine is dropped.
  SQL SECURITY INVOKER{% endif %}
BEGIN{% endif %}
  DECLARE v_why VARCHAR(128) CHARACTER SET utf8mb4 DEFAULT CASE
{%- if !o.cluster %}
  WHEN {% if o.mariadb() -%}
  1 < (SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'wsrep_cluster_size')
  THEN 'this Galera cluster has several nodes: many calls would fail with 1213. Render it with --cluster'
{%- else -%}
  EXISTS (SELECT * FROM performance_schema.global_variables
    WHERE (VARIABLE_NAME, VARIABLE_VALUE) = ('group_replication_single_primary_mode', 'OFF'))
  THEN 'this group has several primaries: most calls would fail at COMMIT. Render the package with --cluster'
{%- endif %}{% endif %}
{%- block conditions %}
{%- if let Some(column) = o.column() %}
  WHEN {% include "files/_column_differs.sql" %}
  THEN {{ COLUMN_DIFFERS|sql_string }}
  WHEN {% include "files/_key_not_unique.sql" %}
  THEN {{ KEY_NOT_UNIQUE|sql_string }}
  WHEN {% include "files/_not_kept.sql" %}
  THEN {{ NOT_KEPT|sql_string }}{% endif %}
{%- if sql.replaces() %}
  WHEN {% include "files/_table_differs.sql" %}
  THEN {{ TABLE_DIFFERS|sql_string }}{% endif %}
{%- endblock %}
  END;
  IF v_why IS NOT NULL THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 30022, MESSAGE_TEXT = v_why;
  END IF;
END
