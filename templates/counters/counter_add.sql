{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_amount BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds an amount to one slot of a counter. The change is part of the transaction of the caller.
  {% include "shared/_slot_selection.sql" %}

Parameters
  p_counter_name VARCHAR: name of the counter, at most {{ NAME_MAX }} characters
  p_amount BIGINT: the amount; a negative amount subtracts, 0 changes nothing

Errors
{{ r.manual_errors() }}
  1690   the count of the slot exceeds the range of BIGINT (error of the server)

Example
  CALL {{ r.name.typed() }}('{{ r.counter() }}', 10);
{%- endfilter %}
BEGIN
{%- include "counters/_count_variables.sql" %}
  {{ r.count("+ p_amount", "p_amount", "p_amount <> 0")|indent(2) }}
END
