CREATE PROCEDURE {{ c.name }}(
{{ c.key_parameters("IN ") }},
  IN p_amount BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ c.options().security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Adds an amount to one slot of the {{ c.subject() }}, in the transaction of the caller, which it neither begins nor
  ends: a rollback takes the amount back.
  {{ c.pick_text() }}

Parameters
{{ c.key_manual() }}
{{ c.manual("p_amount") }}what to add; negative subtracts, 0 changes nothing

Errors
{{ c.errors() }}
  1690   the slot would go beyond BIGINT (the error of the server)

Example
  CALL {{ c.name.typed() }}({{ c.key_example() }}, 10);
{%- endfilter %}
BEGIN
{%- include "_count_variables.sql" %}
{%- if c.keyed() %}
  {{ c.check_key()|indent(2) }}
  IF p_amount IS NULL THEN
    {{ c.signal(E::AmountNull)|indent(4) }}
  END IF;
  -- Nothing to add needs no row.
  IF p_amount <> 0 THEN
    {{ c.count("p_amount", false)|indent(4) }}
  END IF;
{%- else %}
  IF p_amount IS NULL OR p_amount = 0 THEN
    {{ c.check_key()|indent(4) }}
    IF p_amount IS NULL THEN
      {{ c.signal(E::AmountNull)|indent(6) }}
    END IF;
    -- A change by 0 changes no row, which would look like an unknown counter.
    BEGIN
      DECLARE v_last BIGINT;
      {{ c.last_slot("v_last")|indent(6) }}
      IF v_last IS NULL THEN
        {{ c.signal(E::UnknownCounter)|indent(8) }}
      END IF;
    END;
  ELSE
    {{ c.count("p_amount", false)|indent(4) }}
  END IF;
{%- endif %}
END
