{% if o.mariadb() -%}
BEGIN NOT ATOMIC
{%- else -%}
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
             SUM({% if o.is_named() %}counter{% else %}`count`{% endif %}) AS total
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
END
