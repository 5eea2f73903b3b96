{%- let definer = o.definer.as_ref().expect("rendered with a definer") -%}
{{ sql.banner() }}
-- Creates the account that the routines and views run as. It is locked: no client can connect with it.
-- Source it as an administrator after setup.sql, and again after a dump is restored on another server.

CREATE USER IF NOT EXISTS {{ definer }} ACCOUNT LOCK;
ALTER USER {{ definer }} ACCOUNT LOCK;
GRANT SELECT, INSERT, UPDATE, DELETE ON {{ o.table }} TO {{ definer }};{% if let Some(column) = o.column() %}
GRANT SELECT ON {{ column.table }} TO {{ definer }};
GRANT UPDATE ({{ sql.assigned() }}) ON {{ column.table }} TO {{ definer }};
-- On the database, so that the event of the roll-up runs.
GRANT EVENT ON * TO {{ definer }};{% endif %}
-- On the database, because routines call each other, and DROP PROCEDURE removes the privileges on one routine.
GRANT EXECUTE ON * TO {{ definer }};
