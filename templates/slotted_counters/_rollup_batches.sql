-- {{ rollup.column() }}
BEGIN
  {% if let Some(kind) = rollup.single_type() %}DECLARE v_first, v_last {{ kind }};
  {% else %}{{ rollup.declarations("v_first", "DECLARE ", ";")|before(2) }}{{ rollup.declarations("v_last", "DECLARE ", ";")|before(2) }}{% endif %}DECLARE v_most, v_size INT DEFAULT v_batch;
  DECLARE v_message VARCHAR(512) CHARACTER SET utf8mb4;

{%- if table.mariadb() %}
  {{ table.only_mariadb("begin") }}IF {{ rollup.has_constraint()|indent(4) }} THEN
    SET v_most = 1, v_size = 1;
  END IF;{{ table.only_mariadb("end") }}
{%- endif %}
  {{ rollup.next_record("v_first", "")|indent(2) }}
  WHILE {{ rollup.bounds("v_first")[0] }} IS NOT NULL DO
    {{ rollup.last_record()|indent(4) }}
    CALL {{ rollup.routine }}({{ rollup.bound_list("v_first") }}, {{ rollup.bound_list("v_last") }}, v_message);
    IF v_message IS NOT NULL AND v_size > 1 THEN
      -- A part of the batch, until the record is found that the column cannot have.
      SET v_size = v_size DIV 2;
    ELSE
      -- NULL without a message.
      SET v_rejected = COALESCE(v_rejected, LEFT(CONCAT({{ rollup.cannot_have()|sql_string }}, {{ rollup.record_text("v_last") }}, ': ', v_message), {{ MESSAGE_MAX }})),
          v_size = LEAST(v_most, 2 * v_size);
      {{ rollup.next_record("v_first", rollup.follows("v_last").as_str())|indent(6) }}
    END IF;
  END WHILE;
END;
