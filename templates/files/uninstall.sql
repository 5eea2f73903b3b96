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
{%- if !with_table %}
  SELECT {{ sql.key("{}", ", ") }}, SUM(`count`) AS pending
    FROM {{ o.table }}
   GROUP BY {{ sql.key("{}", ", ") }}
  HAVING SUM(`count`) <> 0;
{%- endif %}
{%- endif %}
{%- if with_table %}
  -- Waits for all transactions that have used the table. Meanwhile, and until the table has its name again, calls fail and count nothing.
  RENAME TABLE {{ o.table }} TO {{ script.temporary() }};
  SELECT LEFT(CONCAT('the table has counts, move or delete them first: ', GROUP_CONCAT(entry, ' ', total SEPARATOR '; ')), 128)
    INTO v_left
    FROM (
      SELECT CONCAT_WS(', ', {{ sql.key("{text}", ", ") }}) AS entry,
             SUM({% if o.kind == Counters %}counter{% else %}`count`{% endif %}) AS total
        FROM {{ script.temporary() }}
       GROUP BY {{ sql.key("{}", ", ") }}
      HAVING total <> 0
       LIMIT 5
    ) AS counts;
  IF v_left IS NOT NULL THEN
    RENAME TABLE {{ script.temporary() }} TO {{ o.table }};
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 30022, MESSAGE_TEXT = v_left;
  END IF;
{%- endif %}
END;{% if !o.mariadb() %}
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
