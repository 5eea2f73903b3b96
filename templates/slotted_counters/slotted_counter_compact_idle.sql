{{ r.create_as("PROCEDURE") }}(
  IN p_seconds INT,
  IN p_records INT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Compacts the records that have several slots and whose total does not change for some seconds. Reads all totals,
  waits, reads the totals again, and compacts the records whose total and number of slots are equal.
  Under autocommit, each compaction commits by itself: if the call is interrupted, the compacted records stay compacted.
  Call the procedure outside transactions: in REPEATABLE READ, both reads would return the same snapshot.

Parameters
  p_seconds INT: the time to wait in seconds, 0 to {{ SECONDS_MAX }}; 0 also compacts hot records
  p_records INT: the maximum number of records to compact, 1 to {{ RECORDS_MAX }}; NULL means {{ RECORDS_MAX }}

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}(60, 1000);
{%- endfilter %}
BEGIN
{%- for column in table.key.columns() %}
  DECLARE {{ table.key.variables().argument(column) }} {{ table.key.column_type(column) }};
{%- endfor %}
  DECLARE v_slots BIGINT;
  DECLARE v_total DECIMAL(65, 0);
  DECLARE v_slots_now BIGINT;
  DECLARE v_total_now DECIMAL(65, 0);
  DECLARE v_compacted BIGINT DEFAULT 0;
  DECLARE v_end BOOLEAN DEFAULT FALSE;
  DECLARE spread CURSOR FOR
   SELECT {{ table.key.list() }}, COUNT(*), SUM(`count`)
     FROM {{ table.name }}
    GROUP BY {{ table.key.list() }}
   HAVING COUNT(*) > 1
      AND SUM(`count`) BETWEEN -9223372036854775808 AND 9223372036854775807;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_end = TRUE;

  IF p_seconds IS NULL OR p_seconds NOT BETWEEN 0 AND {{ SECONDS_MAX }} THEN
    {{ r.signal(E::SecondsOutOfRange)|indent(4) }}
  END IF;
  IF p_records NOT BETWEEN 1 AND {{ RECORDS_MAX }} THEN
    {{ r.signal(E::RecordsOutOfRange)|indent(4) }}
  END IF;

  -- The cursor returns the totals of the time when it was opened.
  OPEN spread;
  DO SLEEP(p_seconds);
  FETCH spread INTO {{ table.key.variables().arguments() }}, v_slots, v_total;
  WHILE NOT v_end AND v_compacted < COALESCE(p_records, {{ RECORDS_MAX }}) DO
    {{ table.over_snapshot()|before(4) }}SELECT COUNT(*), SUM(`count`)
      INTO v_slots_now, v_total_now
      FROM {{ table.name }}
     WHERE {{ table.key.variables().equals("")|indent(4) }};
    IF v_slots_now = v_slots AND v_total_now = v_total THEN
      CALL {{ r.sibling(R::Compact) }}({{ table.key.variables().arguments() }});
      SET v_compacted = v_compacted + 1;
    END IF;
    FETCH spread INTO {{ table.key.variables().arguments() }}, v_slots, v_total;
  END WHILE;
  CLOSE spread;
END
