CREATE PROCEDURE {{ r.name }}({{ table.key.parameters("IN ") }},
  IN p_amount BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds an amount to one slot of the record, in the transaction of the caller, which it neither begins nor
  ends: a rollback takes the amount back.
  {{ r.slot_selection() }}

Parameters
{{ r.manual_key() }}
{{ r.manual("p_amount") }}what to add; negative subtracts, 0 changes nothing

Errors
{{ r.manual_errors() }}
  1690   the slot would go beyond BIGINT (the error of the server)

Example
  CALL {{ r.name.typed() }}({{ r.example() }}, 10);
{%- endfilter %}
BEGIN
{%- if package.options.random() %}
  DECLARE v_slot BIGINT;
{% endif %}
  {{ r.check_key()|indent(2) }}
  IF p_amount IS NULL THEN
    {{ r.signal(E::AmountNull)|indent(4) }}
  END IF;
  -- Nothing to add needs no row.
  IF p_amount <> 0 THEN
    {{ r.count_record("p_amount", false)|indent(4) }}
  END IF;
END
