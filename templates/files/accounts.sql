{%- let definer = o.definer.as_ref().expect("rendered with a definer") -%}
{{ sql.banner() }}
-- Creates the account that the routines and views run as. It is locked: no client can connect with it.
-- Source it as an administrator after setup.sql, and again after a dump is restored on another server.

CREATE USER IF NOT EXISTS {{ definer }} ACCOUNT LOCK;
ALTER USER {{ definer }} ACCOUNT LOCK;
GRANT SELECT, INSERT, UPDATE, DELETE ON {{ o.table }} TO {{ definer }};{% if let Some(column) = o.column() %}
GRANT SELECT, UPDATE ON {{ column.table }} TO {{ definer }};{% endif %}
-- On the database, because routines call each other, and DROP PROCEDURE removes the privileges on one routine.
-- Prepared, because GRANT takes _ and % for wildcards{% if !o.mariadb() %} unless partial_revokes is ON{% endif %}.
SET @slotted_escape = {% if o.mariadb() %}CHAR(92){% else %}IF(@@partial_revokes, '', CHAR(92)){% endif %};
SET @slotted_grant = CONCAT('GRANT EXECUTE{% if o.column().is_some() %}, EVENT{% endif %} ON `',
  REPLACE(REPLACE(REPLACE(REPLACE(DATABASE(), '`', '``'), CHAR(92), CONCAT(@slotted_escape, CHAR(92))),
    '_', CONCAT(@slotted_escape, '_')), '%', CONCAT(@slotted_escape, '%')),
  '`.* TO ', {{ definer.to_string()|sql_string }});
PREPARE slotted_grant FROM @slotted_grant;
EXECUTE slotted_grant;
