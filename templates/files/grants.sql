{% include "files/_banner.sql" %}
--
-- Creates a role that has the privileges to use the package in the current database, which is the * of GRANT. Then, for
-- each account of an application:
--   GRANT slotted_application TO 'app'@'%';
--   SET DEFAULT ROLE slotted_application TO 'app'@'%';   MySQL
--   SET DEFAULT ROLE slotted_application FOR 'app'@'%';  MariaDB
-- The role gets EXECUTE on the schema, because DROP removes the privileges that were granted on a routine.

CREATE ROLE IF NOT EXISTS slotted_application;
GRANT EXECUTE ON * TO slotted_application;
GRANT SELECT ON {{ package.totals }} TO slotted_application;
GRANT SELECT ON {{ package.package }} TO slotted_application;
{%- if package.options.security == Security::Invoker %}
-- SQL SECURITY INVOKER: the routines use the privileges of the caller.
GRANT SELECT, INSERT, UPDATE, DELETE ON {{ table.name }} TO slotted_application;
{%- for (rollup, _) in package.rollups() %}
GRANT SELECT, UPDATE ON {{ rollup.table }} TO slotted_application;
{%- endfor %}
{%- endif %}
