{% include "files/_banner.sql" %}
--
-- Drops the routines and the views of the current database. The table and its counts are kept. To create the routines
-- again, source create_procedures.sql. To drop the table:
--   DROP TABLE {{ table.name }};
{% for (_, name) in package.rollups() %}
DROP EVENT IF EXISTS {{ name }};
DROP PROCEDURE IF EXISTS {{ name }};
{%- endfor %}
{%- for (routine, name) in package.routines() %}
DROP {{ routine.kind() }} IF EXISTS {{ name }};
{%- endfor %}
{%- if package.routine(R::Get).is_none() %}
DROP FUNCTION IF EXISTS {{ package.get_name() }};
{%- endif %}
DROP VIEW IF EXISTS {{ package.totals }};
DROP VIEW IF EXISTS {{ package.package }};
