{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Deletes a counter with all its slots in one statement.

Parameters
  p_counter_name VARCHAR: name of the counter, at most {{ NAME_MAX }} characters

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}('downloads');
{%- endfilter %}
BEGIN
  {{ r.check_name()|indent(2) }}
  -- The subquery locks the slots from the highest to slot 1, as increments do. A shrink moves a slot down: at READ
  -- COMMITTED, a statement that reads upwards could miss it.
  {{ table.delete_slots()|indent(2) }}
  IF ROW_COUNT() = 0 THEN
    {{ r.if_interrupted(table.key.equals("").as_str())|before(4) }}{{ r.signal(E::UnknownCounter)|indent(4) }}
  END IF;
END
