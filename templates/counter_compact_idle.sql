CREATE PROCEDURE {{ c.name }}(
  IN p_seconds INT,
  IN p_records INT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ c.options().security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Compacts records that have several rows and that nobody counted for some seconds: reads all totals, waits,
  and compacts those that are still the same. Needs no time stamp in the rows, which an increment would
  have to write. A record that was counted up and down again in between is compacted too, which is never wrong. Each
  record is a step of its own: stopped half-way, what is done stays. Inside a transaction it compacts what
  that transaction has seen idle.

Parameters
  p_seconds  how long to watch, 0 to {{ SECONDS_MAX }}; 0 compacts also what is hot
  p_records  how many records to compact at most, 1 to {{ RECORDS_MAX }}; NULL means {{ RECORDS_MAX }}

Errors
{{ c.errors() }}

Example
  CALL {{ c.name.typed() }}(60, 1000);
{%- endfilter %}
BEGIN
{%- for column in c.keys() %}
  DECLARE {{ c.key_variable(column) }} {{ c.column_type(column) }};
{%- endfor %}
  DECLARE v_slots BIGINT;
  DECLARE v_total DECIMAL(65, 0);
  DECLARE v_slots_now BIGINT;
  DECLARE v_total_now DECIMAL(65, 0);
  DECLARE v_compacted BIGINT DEFAULT 0;
  DECLARE v_end BOOLEAN DEFAULT FALSE;
  DECLARE spread CURSOR FOR
   SELECT {{ c.key_columns("") }}, COUNT(*), SUM({{ c.count_column() }})
     FROM {{ c.table() }}
    GROUP BY {{ c.key_columns("") }}
   HAVING COUNT(*) > 1
      AND SUM({{ c.count_column() }}) BETWEEN -9223372036854775808 AND 9223372036854775807;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_end = TRUE;

  IF p_seconds IS NULL OR p_seconds NOT BETWEEN 0 AND {{ SECONDS_MAX }} THEN
    {{ c.signal(E::SecondsOutOfRange)|indent(4) }}
  END IF;
  IF p_records NOT BETWEEN 1 AND {{ RECORDS_MAX }} THEN
    {{ c.signal(E::RecordsOutOfRange)|indent(4) }}
  END IF;

  -- The cursor keeps what was there when it was opened.
  OPEN spread;
  DO SLEEP(p_seconds);
  FETCH spread INTO {{ c.key_variables() }}, v_slots, v_total;
  WHILE NOT v_end AND v_compacted < COALESCE(p_records, {{ RECORDS_MAX }}) DO
    SELECT COUNT(*), SUM({{ c.count_column() }})
      INTO v_slots_now, v_total_now
      FROM {{ c.table() }}
     WHERE {{ c.key_is_variable()|indent(4) }};
    IF v_slots_now = v_slots AND v_total_now = v_total THEN
      CALL {{ compact }}({{ c.key_variables() }});
      SET v_compacted = v_compacted + 1;
    END IF;
    FETCH spread INTO {{ c.key_variables() }}, v_slots, v_total;
  END WHILE;
  CLOSE spread;
END
