{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Moves all counts of a record to slot 0 and deletes the other slots. The total does not change, and concurrent changes are
  not lost. Compact a record that is no longer hot, to free space and to read fewer rows.
  A compaction waits for transactions that have changed the record.
{%- if !table.bounded() %}
  On a node of a cluster and outside a transaction, statements move each slot. A slot that another node changes at the same time
  is left.
{%- else if package.options.bounded %}
  On a cluster, the call changes slots of all nodes. If another node changes one at the same time, the server returns 1213, 3101
  or 1180 and nothing is changed: call it again.
{%- endif %}

Parameters
{{ table.key.manual() }}

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}({{ r.example() }});
{%- endfilter %}
BEGIN
  DECLARE v_last BIGINT;
  DECLARE v_total DECIMAL(65, 0);
{%- if !table.bounded() %}
  DECLARE v_steps BOOLEAN DEFAULT FALSE;
{%- endif %}

  {{ r.check()|indent(2) }}
  {{ table.over_snapshot()|before(2) }}SELECT MAX(slot), SUM(`count`)
    INTO v_last, v_total
    FROM {{ table.name }}
   WHERE {{ table.key.equals("")|indent(2) }};
  IF v_total NOT BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
    {{ r.signal(E::TotalOutOfRange)|indent(4) }}
  END IF;
  IF v_last > 0 THEN
    CALL {{ r.sibling(R::First) }}({{ table.key.arguments() }});
{%- if !table.bounded() %}
    CALL {{ r.sibling(R::InSteps) }}(v_steps);
  END IF;
  IF v_steps THEN
    CALL {{ r.sibling(R::Steps) }}({{ r.speaker_text() }}, {{ table.key.arguments() }}, NULL);
  ELSEIF v_last > 0 THEN
{%- endif %}
    {{ table.fold_record(table.first_and_others().as_str())|indent(4) }}
    -- Only slots whose count is 0: another connection may have incremented one since.
    {{ table.delete_empty()|indent(4) }}
  END IF;
END
