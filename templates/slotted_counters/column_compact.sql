{%- let rollup = r.rollup() -%}
{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Moves the pending counts of one record into the column, as {{ r.sibling(R::Rollup).typed() }} does for all records.

Parameters
{{ table.key.manual() }}

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}({{ r.example() }});
{%- endfilter %}
BEGIN
  DECLARE v_rejected VARCHAR(512) CHARACTER SET utf8mb4;

  {{ r.check()|indent(2) }}
  CALL {{ rollup.routine }}({{ table.key.arguments() }}, {{ table.key.arguments() }}, v_rejected);
  IF v_rejected IS NOT NULL THEN
    SET v_rejected = LEFT(CONCAT({{ rollup.cannot_have()|sql_string }}, {{ rollup.text_of_arguments() }}, ': ', v_rejected), {{ MESSAGE_MAX }});
    {{ r.signal(E::TotalRejected)|indent(4) }}
  END IF;
END
