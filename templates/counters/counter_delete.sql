{{ r.create_as("PROCEDURE") }}(
  IN p_counter_name {{ table.varchar(NAME_PARAMETER) }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Deletes a counter with all its slots in one statement.
  On a node of a cluster and outside a transaction, a statement deletes each slot, slot 1 at last, and is repeated if it conflicts
  with another node.

Parameters
  p_counter_name VARCHAR: name of the counter, at most {{ NAME_MAX }} characters

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}('downloads');
{%- endfilter %}
BEGIN
{%- include "shared/_step_variables.sql" %}

  {{ r.check_name()|indent(2) }}
  {{ table.find_steps()|indent(2) }}
  IF v_steps THEN
    {{ table.last_slot("v_slot", "")|indent(4) }}
    IF v_slot IS NULL THEN
      {{ r.signal(E::UnknownCounter)|indent(6) }}
    END IF;
    {{ table.in_steps(table.delete_slot())|indent(4) }}
  ELSE
    -- The subquery locks the slots from the highest to slot 1, as increments do. A shrink moves a slot down: at READ
    -- COMMITTED, a statement that reads upwards could miss it.
    {{ table.delete_slots()|indent(4) }}
    IF ROW_COUNT() = 0 THEN
      {{ r.if_interrupted(table.key.equals("").as_str())|before(6) }}{{ r.signal(E::UnknownCounter)|indent(6) }}
    END IF;
  END IF;
END
