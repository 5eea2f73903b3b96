{% include "files/_banner.sql" %}
--
-- Removes the routines and the views from the current database. The table stays, with all counts; to remove
-- that too: DROP TABLE {{ table.name }};
{% for (_, name) in package.rollups() %}
DROP EVENT IF EXISTS {{ name }};
DROP PROCEDURE IF EXISTS {{ name }};
{%- endfor %}
{%- for (routine, name) in package.routines() %}
DROP {{ routine.kind() }} IF EXISTS {{ name }};
{%- endfor %}
DROP VIEW IF EXISTS {{ package.totals }};
DROP VIEW IF EXISTS {{ package.package }};
