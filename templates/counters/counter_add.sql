CREATE PROCEDURE {{ r.name }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }},
  IN p_amount BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds an amount to one slot of the counter, in the transaction of the caller, which it neither begins nor
  ends: a rollback takes the amount back.
  {{ r.slot_selection() }}

Parameters
{{ r.manual_key() }}
{{ r.manual("p_amount") }}what to add; negative subtracts, 0 changes nothing

Errors
{{ r.manual_errors() }}
  1690   the slot would go beyond BIGINT (the error of the server)

Example
  CALL {{ r.name.typed() }}('downloads', 10);
{%- endfilter %}
BEGIN
{%- include "counters/_count_variables.sql" %}
  IF p_amount IS NULL OR p_amount = 0 THEN
    {{ r.check_name()|indent(4) }}
    IF p_amount IS NULL THEN
      {{ r.signal(E::AmountNull)|indent(6) }}
    END IF;
    -- A change by 0 changes no row, which would look like an unknown counter.
    BEGIN
      DECLARE v_last BIGINT;
      {{ table.last_slot("v_last")|indent(6) }}
      IF v_last IS NULL THEN
        {{ r.signal(E::UnknownCounter)|indent(8) }}
      END IF;
    END;
  ELSE
    {{ r.count_named("p_amount")|indent(4) }}
  END IF;
END
