{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }},
  IN p_value BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Sets the total of a {{ table.subject() }} in one statement: slot {{ table.first_slot() }} gets the value, all other slots get 0.
  Each other call takes effect either before the reset, which overwrites it, or after the reset.
  On a cluster, the call changes slots of all nodes. If another node changes one at the same time, the server returns 1213, 3101
  or 1180 and nothing is changed: call it again.

Parameters
{{ table.key.manual() }}
  p_value BIGINT: the new total, at least 0; NULL means 0

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}({{ r.example() }}, 100);
{%- endfilter %}
BEGIN
  {{ r.check_key()|indent(2) }}
  IF p_value < 0 THEN
    {{ r.signal(E::ValueNegative)|indent(4) }}
  END IF;
  CALL {{ r.sibling(R::First) }}({{ table.key.arguments() }});
  -- Without slot 0, the record was deleted after the last statement, which makes the reset the earlier one.
  {{ table.reset_bounded("p_value", "")|indent(2) }}
END
