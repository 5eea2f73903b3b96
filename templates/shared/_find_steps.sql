-- The other nodes of a cluster write their slots all the time, and a change of all slots would fail (1213, 3101, 1180). In
-- steps, each slot is changed by a statement of its own. Outside a transaction, RELEASE finds no savepoint (1305).
{% if table.package.options.nodes.is_some() -%}
{{ table.steps_unless_transaction() }}
{%- else -%}
IF {{ table.nodes() }} > 1 THEN
  {{ table.steps_unless_transaction()|indent(2) }}
END IF;
{%- endif %}
