{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_value BIGINT,
  IN p_restart BOOLEAN
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
  p_counter_name VARCHAR: name of the counter, at most {{ NAME_MAX }} characters
  p_value BIGINT: the new total, at least 0; NULL means 0
  p_restart BOOLEAN: TRUE sets start_date to NOW() in the time zone of the session, FALSE or NULL keeps start_date

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}('seats', 500, TRUE);
{%- endfilter %}
BEGIN
  {{ r.check()|indent(2) }}
  IF p_value < 0 THEN
    {{ r.signal(E::ValueNegative)|indent(4) }}
  END IF;
  {{ table.reset_upsert("p_value", "p_restart")|indent(2) }}
  IF ROW_COUNT() = 0 THEN
    CALL {{ r.sibling(R::Unknown) }}({{ r.speaker_text() }}, p_counter_name);
  END IF;
END
