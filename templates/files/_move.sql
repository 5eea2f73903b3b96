{% if o.mariadb() -%}
BEGIN NOT ATOMIC
{%- else -%}
CREATE PROCEDURE {{ package.temporary() }}() SQL SECURITY INVOKER
BEGIN{% endif %}
  DECLARE v_rows BIGINT;
  DECLARE v_left VARCHAR(128) CHARACTER SET utf8mb4;
  -- 30013: the column rejects a total. 1054, 1146, 1305: the column was renamed, a table or the roll-up was dropped.
  DECLARE CONTINUE HANDLER FOR 1054, 1146, 1305, 30013 BEGIN END;
{% if let Some(rollup) = package.routine(R::Rollup) %}
{% include "files/_last_rollup.sql" %}
{%- endif %}
{%- if sql.with_table() %}
{% include "files/_no_counts.sql" %}
{%- endif %}
END
