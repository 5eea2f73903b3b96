{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Deletes all slots of a record in one statement. On a node of a cluster and outside a transaction, a statement deletes each slot,
  slot 0 at last, and is repeated if it conflicts with another node. If the record has no rows, the call has no effect.

Parameters
{{ table.key.manual() }}

Errors
{{ r.manual_errors() }}

Example
  CALL {{ r.name.typed() }}({{ r.example() }});
{%- endfilter %}
BEGIN
{%- include "shared/_step_variables.sql" %}

  {{ r.check_key()|indent(2) }}
  {{ table.find_steps()|indent(2) }}
  IF v_steps THEN
    {{ table.in_steps(table.delete_slot())|indent(4) }}
  ELSE
    {{ table.delete_slots()|indent(4) }}
{%- if package.options.servers != Servers::Mysql %}
    IF ROW_COUNT() = 0 THEN
      {{ r.if_interrupted(table.key.equals("").as_str())|indent(6) }}
    END IF;
{%- endif %}
  END IF;
END
