CREATE PROCEDURE {{ r.name }}({{ table.key.parameters("IN ") }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds 1 to one slot of the record, in the transaction of the caller, which it neither begins nor ends:
  a rollback takes the count back.
  {{ r.slot_selection() }}

Parameters
{{ r.manual_key() }}

Errors
{{ r.manual_errors() }}
  1690   the slot would go beyond BIGINT (the error of the server)

Example
  CALL {{ r.name.typed() }}({{ r.example() }});
{%- endfilter %}
BEGIN
{%- if package.options.random() %}
  DECLARE v_slot BIGINT;
{% endif %}
  {{ r.count_record("1", true)|indent(2) }}
END
