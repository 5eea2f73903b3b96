CREATE PROCEDURE {{ r.name }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds 1 to one slot of the counter, in the transaction of the caller, which it neither begins nor ends:
  a rollback takes the count back.
  {{ r.slot_selection() }}

Parameters
{{ r.manual_key() }}

Errors
{{ r.manual_errors() }}
  1690   the slot would go beyond BIGINT (the error of the server)

Example
  CALL {{ r.name.typed() }}('downloads');
{%- endfilter %}
BEGIN
{%- include "counters/_count_variables.sql" %}
  {{ r.count_named("1")|indent(2) }}
END
