{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds 1 to one slot of a counter. The increment is part of the transaction of the caller.
  {% include "shared/_slot_selection.sql" %}

Parameters
  p_counter_name VARCHAR: name of the counter, at most {{ NAME_MAX }} characters

Errors
{{ r.manual_errors() }}
  1690   the count of the slot exceeds the range of BIGINT (error of the server)

Example
  CALL {{ r.name.typed() }}('{{ r.counter() }}');
{%- endfilter %}
BEGIN
{%- include "counters/_count_variables.sql" %}
  {{ r.count("+ 1", "1", "")|indent(2) }}
END
