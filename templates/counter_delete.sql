CREATE PROCEDURE {{ c.name }}(
  IN p_counter_name {{ c.name_type(NAME_PARAMETER) }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ c.options().security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Removes the counter with all its slots, in one statement. {{ c.delete_names() }}

Parameters
  p_counter_name  the name of the counter

Errors
{{ c.errors() }}

Example
  CALL {{ c.name.typed() }}('downloads');
{%- endfilter %}
BEGIN
  DECLARE v_message VARCHAR({{ MESSAGE_MAX }}) CHARACTER SET utf8mb4;

{% include "_check_name.sql" %}
  {{ c.over_snapshot()|indent(2) }}
  DELETE FROM {{ c.table() }}
   WHERE counter_name = p_counter_name;
  IF ROW_COUNT() = 0 THEN
    {{ c.signal(E::UnknownCounter)|indent(4) }}
  END IF;
END
