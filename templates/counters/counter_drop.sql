{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Calls {{ r.sibling(R::Delete).typed() }}, which deletes a counter. Error messages start with {{ r.sibling(R::Delete).typed() }}.

Parameters
  p_counter_name VARCHAR: name of the counter, at most {{ NAME_MAX }} characters

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}('downloads');
{%- endfilter %}
CALL {{ r.sibling(R::Delete) }}(p_counter_name)
