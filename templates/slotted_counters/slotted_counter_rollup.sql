{%- let rollup = r.rollup() -%}
{{ r.create_as("PROCEDURE") }}(
  IN p_records INT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Moves the pending counts of {{ table.name.typed() }} into {{ rollup.name() }}: adds them there and subtracts
  them from the slots in one statement. Skips rows that another transaction has locked, and records without a row. Deletes slots that have
  stayed 0. Outside a transaction, each batch commits by itself. On a cluster, each node moves the slots that it writes.
  If the table of the column rejects a total, this record stays pending, all others are moved, and the call ends with an error.

Parameters
  p_records INT: the number of records of a batch, 1 to {{ RECORDS_MAX }}; NULL means {{ BATCH }}

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}(NULL);
{%- endfilter %}
BEGIN
  DECLARE v_batch INT DEFAULT COALESCE(p_records, {{ BATCH }});
  DECLARE v_rejected VARCHAR({{ MESSAGE_MAX }}) CHARACTER SET utf8mb4;

  IF v_batch NOT BETWEEN 1 AND {{ RECORDS_MAX }} THEN
    {{ r.signal(E::RecordsOutOfRange)|indent(4) }}
  END IF;

  -- {{ rollup.name() }}
  BEGIN
    {% if rollup.single() %}{{ rollup.declarations("v_first, v_last", "DECLARE ", ";")|before(4) }}{% else %}{{ rollup.declarations("v_first", "DECLARE ", ";")|before(4) }}{{ rollup.declarations("v_last", "DECLARE ", ";")|before(4) }}{% endif %}DECLARE v_most, v_size INT DEFAULT v_batch;
    DECLARE v_message VARCHAR(512) CHARACTER SET utf8mb4;

{%- if table.mariadb() %}
    {{ table.only_mariadb("begin") }}IF EXISTS (SELECT 1 FROM information_schema.TABLE_CONSTRAINTS
               WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {{ rollup.parent.name()|sql_string }} AND CONSTRAINT_TYPE = 'CHECK'
               UNION ALL SELECT 1 FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = DATABASE()
                 AND TABLE_NAME = {{ rollup.parent.name()|sql_string }} AND COLUMN_NAME = {{ rollup.column.name()|sql_string }}) THEN
      SET v_most = 1, v_size = 1;
    END IF;{{ table.only_mariadb("end") }}
{%- endif %}
    {{ rollup.next_record("")|indent(4) }}
    WHILE {{ rollup.bounds("v_first")[0] }} IS NOT NULL DO
      {{ rollup.last_record()|indent(6) }}
      CALL {{ rollup.routine }}({{ rollup.bound_list("v_first") }}, {{ rollup.bound_list("v_last") }}, v_message);
      IF v_message IS NOT NULL AND v_size > 1 THEN
        -- A part of the batch, until the record is found that the column cannot have.
        SET v_size = v_size DIV 2;
      ELSE
        -- NULL without a message.
        SET v_rejected = COALESCE(v_rejected, LEFT(CONCAT({{ rollup.cannot_have()|sql_string }}, {{ rollup.text_of(rollup.bounds("v_last")) }}, ': ', v_message), {{ MESSAGE_MAX }})),
            v_size = LEAST(v_most, 2 * v_size);
        {{ rollup.next_record(rollup.is_beyond("", ">", "v_last", "").as_str())|indent(8) }}
      END IF;
    END WHILE;
  END;

  IF v_rejected IS NOT NULL THEN
    {{ r.signal(E::TotalRejected)|indent(4) }}
  END IF;
END
