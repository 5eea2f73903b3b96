CREATE PROCEDURE {{ r.name }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Calls {{ r.sibling(R::Delete).typed() }}, which deletes a counter. The errors have the name of that procedure.

Parameters
  p_counter_name VARCHAR({{ NAME_MAX }}): name of the counter

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}('downloads');
{%- endfilter %}
CALL {{ r.sibling(R::Delete) }}(p_counter_name)
