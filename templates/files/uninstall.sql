{% include "files/_banner.sql" %}
--
-- Drops the routines and the views of the current database. The table and its counts are kept. To create the routines
-- again, source create_procedures.sql. To drop the table:
--   DROP TABLE {{ table.name }};
{%- if package.routine(R::Rollup).is_some() %}
-- The last roll-up moves the pending counts. The script prints the records whose counts remain in the table, because they have no
-- row or the column rejects their total. Drop the table only if you need none of them.
{%- let again = "create_procedures.sql and the script again" %}
{%- include "files/_waits.sql" %}
{%- else %}
{%- let again = "the script again" %}
{%- include "files/_waits.sql" %}
{%- endif %}

{% include "files/_session_begin.sql" %}
{%- if let Some(event) = package.routine(R::Rollup) %}

-- The event that calls the roll-up, if there is one. DROP EVENT IF EXISTS would need the privilege EVENT without one, too.
SET @slotted_event = (
  SELECT IF(COUNT(*) = 0, 'DO 0', {% filter sql_string %}DROP EVENT {{ event }}{% endfilter %})
    FROM information_schema.EVENTS
   WHERE EVENT_SCHEMA = DATABASE()
     AND EVENT_NAME = {{ event.name()|sql_string }}
);
PREPARE slotted_event FROM @slotted_event;
EXECUTE slotted_event;
DEALLOCATE PREPARE slotted_event;
{%- endif %}
{% for (routine, name) in script.dropped_first() %}
DROP {{ routine.kind() }} IF EXISTS {{ name }};
{%- endfor %}
{%- if let Some(rollup) = package.routine(R::Rollup) %}
{%- let last = script.last_rollup() %}

-- The last roll-up, as a routine because only a routine can go on after an error.
DROP PROCEDURE IF EXISTS {{ last }};
DELIMITER ;;
CREATE PROCEDURE {{ last }}()
  MODIFIES SQL DATA
BEGIN
  -- 1305 and 1146: a routine or a table does not exist, because this script was sourced before. 1054: a column was renamed.
  -- 30013: the column rejects the total of a record. All others are moved.
  DECLARE CONTINUE HANDLER FOR 1054, 1146, 1305, 30013
    BEGIN
    END;

  -- No transaction can count any more. Waits for those that have (SET: DO ignores a lock wait timeout on MariaDB).
  SET @slotted_locked = (SELECT COUNT(*) FROM {{ table.name }} LOCK IN SHARE MODE);
  CALL {{ rollup }}(NULL);
  -- It skips what another transaction has locked. Waits for these rows.
  START TRANSACTION;
{%- if let Some(pending) = table.rollup() %}
  {{ pending.lock_rows()|indent(2) }}
{%- endif %}
  CALL {{ rollup }}(NULL);
  COMMIT AND NO CHAIN NO RELEASE;
  SELECT {{ table.key.list() }},
         SUM(`count`) AS pending
    FROM {{ table.name }}
   GROUP BY {{ table.key.list() }}
  HAVING SUM(`count`) <> 0;
END;;
DELIMITER ;
CALL {{ last }}();
DROP PROCEDURE {{ last }};
{% for (routine, name) in script.dropped_last() %}
DROP {{ routine.kind() }} IF EXISTS {{ name }};
{%- endfor %}
{%- endif %}
{{- script.leftovers() }}
DROP VIEW IF EXISTS {{ package.totals }};
DROP VIEW IF EXISTS {{ package.package }};

{% include "files/_session_end.sql" %}
