{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  The same as {{ r.sibling(R::Delete).typed() }}. Error messages begin with that name.
{%- endfilter %}
CALL {{ r.sibling(R::Delete) }}(p_counter_name)
