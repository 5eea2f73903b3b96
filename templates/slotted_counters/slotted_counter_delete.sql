{{ r.create_as("PROCEDURE") }}({{ table.key.parameters("IN ") }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ package.options.security.sql() }}
  COMMENT {% filter sql_string -%}
Description
  Deletes all slots of a record in one statement. If the record has no rows, the call has no effect.
{%- if !table.bounded() %}
  On a node of a cluster and outside a transaction, a statement deletes each slot, slot 0 last, and is repeated if it conflicts
  with another node.
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
{%- if !table.bounded() %}
  DECLARE v_steps BOOLEAN;
{% endif %}
  {{ r.check()|indent(2) }}
{%- if !table.bounded() %}
  CALL {{ r.sibling(R::InSteps) }}(v_steps);
  IF v_steps THEN
    CALL {{ r.sibling(R::Steps) }}({{ r.speaker_text() }}, {{ table.key.arguments() }}, NULL);
  ELSE
    {{ r.delete_record()|indent(4) }}
  END IF;
{%- else %}
  {{ r.delete_record()|indent(2) }}
{%- endif %}
END
