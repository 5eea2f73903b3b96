CREATE PROCEDURE {{ c.name }}(
  IN p_counter_name {{ c.name_type(NAME_PARAMETER) }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ c.options().security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds 1 to one slot of the counter, in the transaction of the caller, which it neither begins nor ends:
  a rollback takes the count back.
  {{ c.pick_text() }}

Parameters
  p_counter_name  the name of the counter

Errors
{{ c.errors() }}
  1690   the slot would go beyond BIGINT (the error of the server)

Example
  CALL {{ c.name.typed() }}('downloads');
{%- endfilter %}
BEGIN
{%- include "_count_variables.sql" %}

{% include "_check_name.sql" %}

  {{ c.count("1")|indent(2) }}
END
