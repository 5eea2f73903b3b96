{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }},
  IN p_amount BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds an amount to one slot of a record. The change is part of the transaction of the caller: COMMIT and ROLLBACK apply
  to it.
  {% include "shared/_slot_selection.sql" %}

Parameters
{{ table.key.manual() }}
  p_amount BIGINT: the amount; a negative amount subtracts, 0 changes nothing

Errors
{{ r.manual_errors() }}
  1690   the count of the slot exceeds the range of BIGINT (error of the server)

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
  -- An amount of 0 inserts no slot.
  IF p_amount <> 0 THEN
    {{ r.count_record("p_amount", false)|indent(4) }}
  END IF;
END
