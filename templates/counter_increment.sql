CREATE PROCEDURE {{ c.name }}(
{{ c.key_parameters("IN ") }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ c.options().security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds 1 to one slot of the {{ c.subject() }}, in the transaction of the caller, which it neither begins nor ends:
  a rollback takes the count back.
  {{ c.pick_text() }}

Parameters
{{ c.key_manual() }}

Errors
{{ c.errors() }}
  1690   the slot would go beyond BIGINT (the error of the server)

Example
  CALL {{ c.name.typed() }}({{ c.key_example() }});
{%- endfilter %}
BEGIN
{%- include "_count_variables.sql" %}
  {{ c.count("1", c.keyed())|indent(2) }}
END
