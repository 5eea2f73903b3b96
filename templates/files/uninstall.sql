{% include "files/_banner.sql" %}
--
-- Drops the routines and the views of the current database. The table and its counts are kept. To create the routines
-- again, source create_procedures.sql. To drop the table:
--   DROP TABLE {{ table.name }}{% for (_, written) in package.rollups() %}, {{ written }}{% endfor %};
{% if package.options.rollup_every.is_some() %}{% if let Some(name) = package.event() %}
DROP EVENT IF EXISTS {{ name }};
{%- endif %}{% endif %}
{%- for (routine, name) in package.routines() %}
DROP {{ routine.kind() }} IF EXISTS {{ name }};
{%- endfor %}
{{- script.leftovers() }}
DROP VIEW IF EXISTS {{ package.totals }};
DROP VIEW IF EXISTS {{ package.package }};
