{{ c.banner() }}
--
-- Removes the routines and the views from the current database. The table stays, with all counts; to remove
-- that too: DROP TABLE {{ c.table() }};
{% for (_, name) in c.package.rollups() %}
DROP EVENT IF EXISTS {{ name }};
DROP PROCEDURE IF EXISTS {{ name }};
{%- endfor %}
{%- for (routine, name) in c.package.routines() %}
DROP {{ routine.kind() }} IF EXISTS {{ name }};
{%- endfor %}
DROP VIEW IF EXISTS {{ c.package.totals }};
DROP VIEW IF EXISTS {{ c.package.package }};
