{% include "files/_banner.sql" %}
--
-- Drops the routines and the views of the current database. The table and its counts are kept. To create the routines
-- again, source create_procedures.sql. To drop the table:
--   DROP TABLE {{ table.name }};
{%- if package.options.column.is_some() %}
-- The last roll-up moves the pending counts. The query after it returns the records whose counts remain in the table: because
-- they have no row, or because the server rejects their total. Drop the table only if it returns none that you need;
-- create_procedures.sql and this script again move what can be moved then. On a cluster, first
-- call the roll-up on each other node.
{%- endif %}
{%- if package.options.column.is_some() %}
{%- let again = "create_procedures.sql and the script again" %}
{%- include "files/_waits.sql" %}
{%- else %}
{%- let again = "the script again" %}
{%- include "files/_waits.sql" %}
{%- endif %}

{% include "files/_session_begin.sql" %}
{% for (routine, name) in script.dropped_first() %}
DROP {{ routine.kind() }} IF EXISTS {{ name }};
{%- endfor %}
{%- if let Some(rollup) = package.routine(R::Rollup) %}

-- No transaction can count any more. Waits for those that have (SET: DO ignores a lock wait timeout on MariaDB).
SET @slotted_locked = (SELECT COUNT(*) FROM {{ table.name }} LOCK IN SHARE MODE);
-- Without the routine, this script was here before, or a migration failed before it created the routine.
SET @slotted_rollup = (
  SELECT IF(COUNT(*) = 0, 'DO 0', {% filter sql_string %}CALL {{ rollup }}(NULL){% endfilter %})
    FROM information_schema.ROUTINES
   WHERE ROUTINE_SCHEMA = DATABASE()
     AND ROUTINE_NAME = {{ rollup.name()|sql_string }}
);
PREPARE slotted_rollup FROM @slotted_rollup;
EXECUTE slotted_rollup;
-- It skips what another transaction has locked. Waits for these rows.
{% let call = "EXECUTE slotted_rollup" -%}
{% include "files/_waiting_rollup.sql" %}
DEALLOCATE PREPARE slotted_rollup;
{{ script.pending() }}
{% for (routine, name) in script.dropped_last() %}
DROP {{ routine.kind() }} IF EXISTS {{ name }};
{%- endfor %}
{%- endif %}
{{- script.leftovers() }}
DROP VIEW IF EXISTS {{ package.totals }};
DROP VIEW IF EXISTS {{ package.package }};

{% include "files/_session_end.sql" %}
