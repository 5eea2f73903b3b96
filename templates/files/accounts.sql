{%- let definer = package.options.definer.as_ref().expect("rendered with a definer") -%}
{% include "files/_banner.sql" %}
--
-- Creates the account that the routines, views and events of the package run as, and grants it the privileges that they
-- need in the current database. The account has no password and is locked: no client can connect with it. An existing
-- account gets the privileges and is not changed otherwise{% if package.options.servers != Servers::Mariadb %}, except that on MySQL its roles become its default roles{% endif %}.
--
-- Source this script as an administrator after setup.sql, and after a dump has been restored on another server.
{%- if package.options.servers == Servers::Mariadb %}
-- Source it again if an upgrade of the package has added a routine.
{%- endif %}

{% include "files/_session_begin.sql" %}

CREATE USER IF NOT EXISTS {{ definer }} ACCOUNT LOCK;
GRANT SELECT, INSERT, UPDATE, DELETE ON {{ table.name }} TO {{ definer }};

-- The definer of a routine needs EXECUTE on it, too.
{%- if package.options.servers == Servers::Mariadb %}
{%- for (routine, name) in package.routines() %}
GRANT EXECUTE ON {{ routine.kind() }} {{ name }} TO {{ definer }};
{%- endfor %}
{%- else %}
-- On the database, because on MySQL DROP removes the privileges on a routine: calls would fail after an upgrade.
GRANT EXECUTE ON * TO {{ definer }};
{%- endif %}
{%- if let Some(rollup) = table.rollup() %}
GRANT SELECT ({{ rollup.read() }}), UPDATE ({{ rollup.changed() }}) ON {{ rollup.parent }} TO {{ definer }};
{%- endif %}
{%- if package.options.servers != Servers::Mariadb %}

-- MySQL rejects a view for an account with an active role (1356) if the definer has SELECT on the table and no active role. The
-- server activates the default roles of a definer. The role has nothing that the definer does not have in this database.
{%- let role = package.roles().application %}
{%- let (begin, end) = (table.only_mysql("begin"), table.only_mysql("end")) %}
{{ begin }}CREATE ROLE IF NOT EXISTS {{ role }}{{ end }};
{{ begin }}GRANT {{ role }} TO {{ definer }}{{ end }};
{{ begin }}SET DEFAULT ROLE ALL TO {{ definer }}{{ end }};
{%- endif %}

{% include "files/_session_end.sql" %}
