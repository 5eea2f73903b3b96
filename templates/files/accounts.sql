{%- let definer = package.options.definer.as_ref().expect("rendered with a definer") -%}
{% include "files/_banner.sql" %}
--
-- Creates the account that the routines, views and events of the package run as, and grants it the privileges that they
-- need in the current database. The account has no password and is locked: no client can connect with it. An existing
-- account gets the privileges and is not changed otherwise.
--
-- Source this script as an administrator after setup.sql, and after a dump has been restored on another server.
{%- if package.options.servers != Servers::Mariadb %}
-- On MySQL, source it again after create_procedures.sql: DROP removes the privileges that were granted on a routine.
{%- endif %}

CREATE USER IF NOT EXISTS {{ definer }} ACCOUNT LOCK;
GRANT SELECT, INSERT, UPDATE, DELETE ON {{ table.name }} TO {{ definer }};
{%- for (routine, _) in package.routines() %}
{%- if let Some(called) = routine.calls() %}
GRANT EXECUTE ON PROCEDURE {{ package.routine(*called).expect("the same package has it") }} TO {{ definer }};
{%- endif %}
{%- endfor %}
{%- for (rollup, name) in package.rollups() %}
GRANT SELECT ({{ rollup.id }}, {{ rollup.target }}), UPDATE ({{ rollup.target }}) ON {{ rollup.table }} TO {{ definer }};
{%- if package.options.rollup_every.is_some() %}
GRANT EXECUTE ON PROCEDURE {{ name }} TO {{ definer }};
{%- endif %}
{%- endfor %}
{%- if package.options.rollup_every.is_some() %}
-- An event runs only if its definer has this privilege.
GRANT EVENT ON * TO {{ definer }};
{%- endif %}
