{% include "files/_banner.sql" %}
--
-- Makes a role that may use the package in the current database (GRANT .. ON * means that one). Then, for each
-- account of an application:
--   GRANT slotted_application TO 'app'@'%';
--   SET DEFAULT ROLE slotted_application TO 'app'@'%';   MySQL
--   SET DEFAULT ROLE slotted_application FOR 'app'@'%';  MariaDB
-- EXECUTE is granted on the whole schema, because a grant on one routine is lost when that routine is replaced.

CREATE ROLE IF NOT EXISTS slotted_application;
GRANT EXECUTE ON * TO slotted_application;
GRANT SELECT ON {{ package.totals }} TO slotted_application;
GRANT SELECT ON {{ package.package }} TO slotted_application;
{%- if package.options.security == Security::Invoker %}
-- The routines run with the privileges of their caller.
GRANT SELECT, INSERT, UPDATE, DELETE ON {{ table.name }} TO slotted_application;
{%- for (rollup, _) in package.rollups() %}
GRANT SELECT, UPDATE ON {{ rollup.table }} TO slotted_application;
{%- endfor %}
{%- endif %}
