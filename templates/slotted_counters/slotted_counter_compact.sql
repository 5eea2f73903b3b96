{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Moves all counts of a record to slot 0 and deletes the other slots. The total does not change, and concurrent
  increments are not lost. Compact a record that is no longer hot, to free space and to read fewer rows.
  A compaction waits for transactions that have incremented the record.
  On a node of a cluster and outside a transaction, statements move each slot. A slot that another node writes at the same time is
  left.

Parameters
{{ table.key.manual() }}

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}({{ r.example() }});
{%- endfilter %}
BEGIN
  DECLARE v_rows BIGINT;
  DECLARE v_total DECIMAL(65, 0);
{%- include "shared/_step_variables.sql" %}

  {{ r.check_key()|indent(2) }}
  SELECT COUNT(*), SUM(`count`)
    INTO v_rows, v_total
    FROM {{ table.name }}
   WHERE {{ table.key.equals("")|indent(2) }};
  IF v_total NOT BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
    {{ r.signal(E::TotalOutOfRange)|indent(4) }}
  END IF;

  {{ table.find_steps()|indent(2) }}
  IF v_steps AND v_rows > 0 THEN
    {{ table.in_steps(table.compact_slot())|indent(4) }}
  ELSEIF v_rows > 0 THEN
    {{ table.first_row()|indent(4) }}

    {{ table.fold(table.all_slots(), table.first_slot())|indent(4) }}

    {{ table.delete_folded(table.all_slots())|indent(4) }}
  END IF;
END
