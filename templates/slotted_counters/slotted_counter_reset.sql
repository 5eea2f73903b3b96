{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }},
  IN p_value BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Sets the total of a record in one statement: slot 0 gets the value{% if table.rollup().is_some() %} less the column{% endif %}, all other slots get 0.
  A concurrent call takes effect either before the reset, which overwrites it, or after the reset.
{%- if !table.bounded() %}
  On a node of a cluster and outside a transaction, a statement resets each slot, slot 0 last, and is repeated if it conflicts
  with another node. Until the call ends, a read can return less than the old and the new total.
{%- else if package.options.bounded %}
  On a cluster, the call changes slots of all nodes. If another node changes one at the same time, the server returns 1213, 3101
  or 1180 and nothing is changed: call it again.
{%- endif %}
{%- if table.rollup().is_some() %}
  Then the column gets the value, unless another transaction has locked its row, or another node writes slot 0: then the next roll-up moves it.
{%- endif %}

Parameters
{{ table.key.manual() }}
  p_value BIGINT: the new total{% if package.options.bounded %}, at least 0{% endif %}; NULL means 0

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}({{ r.example() }}, 100);
{%- endfilter %}
BEGIN
{%- if !table.bounded() %}
  DECLARE v_steps BOOLEAN;
{%- if table.rollup().is_some() %}
  DECLARE v_message VARCHAR(512) CHARACTER SET utf8mb4;
{%- endif %}
{% endif %}
  {{ r.check()|indent(2) }}
{%- if package.options.bounded %}
  IF p_value < 0 THEN
    {{ r.signal(E::ValueNegative)|indent(4) }}
  END IF;
{%- endif %}
  CALL {{ r.sibling(R::First) }}({{ table.key.arguments() }});
{%- if !table.bounded() %}
  CALL {{ r.sibling(R::InSteps) }}(v_steps);
  IF v_steps THEN
    CALL {{ r.sibling(R::Steps) }}({{ r.speaker_text() }}, {{ table.key.arguments() }}, p_value);
  ELSE
    {{ table.reset_upsert("p_value", "")|indent(4) }}
  END IF;
{%- else %}
  -- Without slot 0, the record was deleted after the last statement, which makes the reset the earlier one.
  {{ table.reset_upsert("p_value", "")|indent(2) }}
{%- endif %}
{%- if let Some(rollup) = table.rollup() %}
  CALL {{ rollup.routine }}({{ table.key.arguments() }}, {{ table.key.arguments() }}, v_message);
{%- endif %}
END
