{% include "files/_banner.sql" %}
--
-- Drops the routines and the views of the current database. The table and its counts are kept. To create the routines
-- again, source create_procedures.sql. To drop the table:
--   DROP TABLE {{ table.name }};
{%- for (_, _) in package.rollups() %}{% if loop.first %}
-- The last roll-up moves the pending counts. The query after it returns the records whose counts remain in the table: because
-- they have no row, because the server rejects their total, or because another transaction has locked them.
{%- if table.on_nodes() %} On a cluster, first
-- call the roll-up on each other node.
{%- endif %}
{%- endif %}{% endfor %}
{%- let again = "the script again" %}
{%- include "files/_waits.sql" %}

{% include "files/_session_begin.sql" %}
{% if package.options.rollup_every.is_some() %}{% if let Some(name) = package.event() %}
DROP EVENT IF EXISTS {{ name }};
{%- endif %}{% endif %}
{%- if let Some(rollup) = package.routine(R::Rollup) %}
CALL {{ rollup }}(NULL);
{{ script.pending() }}
{%- endif %}
{%- for (routine, name) in package.routines() %}
DROP {{ routine.kind() }} IF EXISTS {{ name }};
{%- endfor %}
{{- script.leftovers() }}
DROP VIEW IF EXISTS {{ package.totals }};
DROP VIEW IF EXISTS {{ package.package }};

{% include "files/_session_end.sql" %}
