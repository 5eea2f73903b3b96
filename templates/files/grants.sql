{%- let roles = package.roles() -%}
{% include "files/_banner.sql" %}
--
-- Creates two roles in the server and grants them the privileges to use the package in the current database:
--   {{ roles.application }}  counts and reads
--   {{ roles.admin }}  also creates, changes and deletes counters
-- Then, for each account of an application:
--   GRANT {{ roles.application }} TO 'app'@'%';
--   SET DEFAULT ROLE {{ roles.application }} TO 'app'@'%';   MySQL
--   SET DEFAULT ROLE {{ roles.application }} FOR 'app'@'%';  MariaDB
{% if package.options.servers != Servers::Mysql %}-- An account of MariaDB has one default role: give several packages of an application the same roles, with other names in this file.
{% endif %}-- The privileges are granted routine by routine, because the database in GRANT ON * is a pattern, in which _ matches any
-- character. A role has the privileges of each database in which this script was sourced: write other names
-- into this file to give each database roles of its own.
--
-- Your account needs CREATE ROLE and, to grant the roles, ROLE_ADMIN (MySQL), or CREATE USER (MariaDB), and the granted privileges with
-- GRANT OPTION. An account without the first can grant the privileges below to accounts in place of roles.
{%- if package.options.servers != Servers::Mariadb %}
-- On MySQL, source this script again after create_procedures.sql: DROP removes the privileges that were granted on a routine.
{%- endif %}

{% include "files/_session_begin.sql" %}

CREATE ROLE IF NOT EXISTS {{ roles.application }}, {{ roles.admin }};
{% for (role, admin) in script.grantees() %}
{%- for (routine, name) in package.granted(*admin) %}
GRANT EXECUTE ON {{ routine.kind() }} {{ name }} TO {{ role }};
{%- endfor %}
GRANT SELECT ON {{ package.totals }} TO {{ role }};
GRANT SELECT ON {{ package.package }} TO {{ role }};
{%- if package.options.security != Security::Invoker && package.options.column.is_some() %}
-- For lists of records: the pending counts.
GRANT SELECT ON {{ table.name }} TO {{ role }};
{%- endif %}
{%- if package.options.security == Security::Invoker %}
-- SQL SECURITY INVOKER: the routines use the privileges of the caller.
GRANT SELECT, INSERT, UPDATE{% if admin %}, DELETE{% endif %} ON {{ table.name }} TO {{ role }};
{%- if let Some(rollup) = table.rollup() %}
GRANT SELECT ({{ rollup.read() }}){% if admin %}, UPDATE ({{ rollup.changed() }}){% endif %} ON {{ rollup.parent }} TO {{ role }};
{%- endif %}
{%- endif %}
{% endfor %}
{% include "files/_session_end.sql" %}
