CREATE PROCEDURE {{ c.name }}(
{{ c.key_parameters("IN ") }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ c.options().security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Puts all counts of the {{ c.subject() }} into one row, also while others count: the total stays right at every
  moment and nothing is lost. Worth a call when the {{ c.subject() }} has gone cold: its other slots take room and
  time to read. Waits for transactions that hold a slot of it.

Parameters
{{ c.key_manual() }}

Errors
{{ c.errors() }}

Example
  CALL {{ c.name.typed() }}({{ c.key_example() }});
{%- endfilter %}
BEGIN
  DECLARE v_rows BIGINT;
  DECLARE v_total DECIMAL(65, 0);

  {{ c.check_key()|indent(2) }}
  SELECT COUNT(*), SUM({{ c.count_column() }})
    INTO v_rows, v_total
    FROM {{ c.table() }}
   WHERE {{ c.key_is("")|indent(2) }};
  IF v_total NOT BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
    {{ c.signal(E::TotalOutOfRange)|indent(4) }}
  END IF;

  IF v_rows > 0 THEN
    {{ c.first_row()|indent(4) }}

    {{ c.fold("0")|indent(4) }}
  END IF;
END
