{% include "files/_banner.sql" %}
-- Drops the routines and the views. The table and its counts stay; DROP TABLE {{ o.table }} deletes them.
{%- if o.column.is_some() %}
-- A last roll-up moves the pending counts. The script prints the records whose counts stay in the table, because the
-- column rejects their total or they have no row.{% endif %}
-- A statement that waits for open transactions ends after {{ DDL_TIMEOUT }} s (1205): source the script again.

{% let end = ";" -%}
{% include "files/_begin.sql" %}
{% if let Some(rollup) = package.routine(R::Rollup) -%}
{% for name in package.of_applications() -%}
DROP PROCEDURE IF EXISTS {{ name }};
{% endfor %}
{% endif -%}
{% if package.routine(R::Rollup).is_some() || with_table -%}
{% if o.mariadb() -%}
BEGIN NOT ATOMIC
{%- else -%}
DROP PROCEDURE IF EXISTS {{ script.temporary() }};
CREATE PROCEDURE {{ script.temporary() }}()
BEGIN{% endif %}
  DECLARE v_rows BIGINT;
  DECLARE v_left VARCHAR(128) CHARACTER SET utf8mb4;
  -- 30013: the column rejects a total. 1054, 1146, 1305: the column was renamed, a table or the roll-up was dropped.
  DECLARE CONTINUE HANDLER FOR 1054, 1146, 1305, 30013
    BEGIN
    END;
{% if let Some(rollup) = package.routine(R::Rollup) %}
{% include "files/_last_rollup.sql" %}
{%- endif %}
{%- if with_table %}
{% include "files/_no_counts.sql" %}
{%- endif %}
END;
{%- if !o.mariadb() %}
CALL {{ script.temporary() }}();{% endif %}

{% endif -%}
{% if !o.mariadb() -%}
DROP PROCEDURE IF EXISTS {{ script.temporary() }};
{% endif -%}{% for (routine, name) in package.routines() -%}
DROP {{ routine.kind() }} IF EXISTS {{ name }};
{% endfor -%}
DROP VIEW IF EXISTS {{ package.totals }};
DROP VIEW IF EXISTS {{ package.package }};
{%- if with_table %}
DROP TABLE IF EXISTS {{ script.temporary() }};
{%- endif %};
{% include "files/_end.sql" %}
