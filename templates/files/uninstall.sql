{% include "files/_banner.sql" %}
-- Drops the routines and the views. The table and its counts stay; DROP TABLE {{ o.table }} deletes them.{% if o.column.is_some() %}
-- A last roll-up moves the pending counts. The script prints the records whose counts stay in the table, because the column
-- rejects their total or they have no row.{% endif %}
-- A statement that waits for open transactions ends after {{ DDL_TIMEOUT }} s (1205): source the script again.

{% let end = ";" -%}
DELIMITER ;;
-- The client sends all statements up to the delimiter at once, so that the server stops at the first error, at the prompt as well.
{% include "files/_begin.sql" %}
{% if let Some(rollup) = package.routine(R::Rollup) -%}
{% for name in package.of_applications() -%}
DROP PROCEDURE IF EXISTS {{ name }};
{% endfor %}
{% if o.mariadb() -%}
BEGIN NOT ATOMIC
{%- else -%}
DROP PROCEDURE IF EXISTS {{ script.temporary() }};
CREATE PROCEDURE {{ script.temporary() }}()
BEGIN{% endif %}
  DECLARE v_rows BIGINT;
  -- 30013: the column rejects a total. 1054, 1146, 1305: the column was renamed, a table or the roll-up was dropped.
  DECLARE CONTINUE HANDLER FOR 1054, 1146, 1305, 30013
    BEGIN
    END;

  -- DROP EVENT IF EXISTS would need the privilege EVENT even without an event.
  IF EXISTS (
    SELECT *
      FROM information_schema.EVENTS
     WHERE EVENT_SCHEMA = DATABASE()
       AND EVENT_NAME = {{ rollup.name()|sql_string }}
  ) THEN
    DROP EVENT {{ rollup }};
  END IF;
  -- Waits for the transactions that have counted.
  SELECT COUNT(*)
    INTO v_rows
    FROM {{ o.table }}
    LOCK IN SHARE MODE;
  CALL {{ rollup }}(NULL);
  SELECT {{ sql.key("{}", ", ") }}, SUM(`count`) AS pending
    FROM {{ o.table }}
   GROUP BY {{ sql.key("{}", ", ") }}
  HAVING SUM(`count`) <> 0;
END;{% if !o.mariadb() %}
CALL {{ script.temporary() }}();{% endif %}

{% endif -%}
{% if !o.mariadb() -%}
DROP PROCEDURE IF EXISTS {{ script.temporary() }};
{% endif -%}{% for (routine, name) in package.routines() -%}
DROP {{ routine.kind() }} IF EXISTS {{ name }};
{% endfor -%}
DROP VIEW IF EXISTS {{ package.totals }};
DROP VIEW IF EXISTS {{ package.package }};;
{% include "files/_end.sql" %}
