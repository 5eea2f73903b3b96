{{ sql.banner() }}
-- 'app'@'%' counts and reads; 'dba'@'%' also creates, changes and deletes counters. Replace both with accounts or roles
-- that exist: a GRANT to another ends the script. It needs GRANT OPTION on the database, which ALL lacks (1370).
{%- if !o.mariadb() %}
-- Source it again after create_procedures.sql: DROP PROCEDURE removes the privileges on a routine.
{%- else %}

-- Without this mode, GRANT creates an account that does not exist, without a password.
SET @slotted_sql_mode = @@sql_mode, sql_mode = 'NO_AUTO_CREATE_USER';{% endif %}

{% for name in package.of_applications() -%}
GRANT EXECUTE ON PROCEDURE {{ name }} TO 'app'@'%', 'dba'@'%';
{% endfor -%}
GRANT SELECT ON {{ package.totals }} TO 'app'@'%', 'dba'@'%';
GRANT SELECT ON {{ package.description }} TO 'app'@'%', 'dba'@'%';{% if o.security == Security::Invoker %}
GRANT SELECT, INSERT, UPDATE ON {{ o.table }} TO 'app'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON {{ o.table }} TO 'dba'@'%';{% if let Some(column) = o.column() %}
GRANT SELECT ON {{ column.table }} TO 'app'@'%';
GRANT SELECT, UPDATE ON {{ column.table }} TO 'dba'@'%';{% endif %}
{%- else if o.column().is_some() %}
GRANT SELECT ON {{ o.table }} TO 'app'@'%', 'dba'@'%';{% endif %}

{% for name in package.of_administrators() -%}
GRANT EXECUTE ON PROCEDURE {{ name }} TO 'dba'@'%';
{% endfor %}
{%- if let Some(get) = package.routine(R::Get) %}
-- Last, because a server can have rejected the function.
GRANT EXECUTE ON FUNCTION {{ get }} TO 'app'@'%', 'dba'@'%';{% endif %}
{%- if o.mariadb() %}

SET sql_mode = @slotted_sql_mode;{% endif %}
