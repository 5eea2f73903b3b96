{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }},
  IN p_amount BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds an amount to one slot of a record. The change is part of the transaction of the caller.
{%- if package.options.bounded %}
  A negative amount is taken: the call is that of {{ r.sibling(R::Take).typed() }}, with which error messages begin.
{%- else %}
  {% include "shared/_slot_selection.sql" %}
{%- endif %}

Parameters
{{ table.key.manual() }}
  p_amount BIGINT: the amount; {% if !package.options.bounded %}a negative amount subtracts, {% endif %}0 changes nothing

Errors
{{ r.manual_errors() }}
  1690   the count of the slot{% if package.options.bounded %}, or the amount with the other sign,{% endif %} exceeds the range of BIGINT (error of the server)

Example
  CALL {{ r.name.typed() }}({{ r.example() }}, 10);
{%- endfilter %}
BEGIN
  IF p_amount {% if package.options.bounded %}>{% else %}<>{% endif %} 0 AND {{ table.key.valid()|indent(2) }} THEN
    {{ table.upsert("p_amount", table.slot_of_call())|indent(4) }}
{%- if package.options.bounded %}
  ELSEIF p_amount < 0 THEN
    CALL {{ r.sibling(R::Take) }}({{ table.key.arguments() }}, -p_amount);
{%- endif %}
  ELSE
    {{ r.check()|indent(4) }}
    IF p_amount IS NULL THEN
      {{ r.signal(E::AmountNull)|indent(6) }}
    END IF;
  END IF;
END
