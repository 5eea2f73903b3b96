{{ sql.create("PROCEDURE") }}({{ sql.key("IN {p} {type}", ",\n  ") }})
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Deletes all slots of a record
{%- if o.column().is_some() %} with their pending counts{% endif %}; it is no error if there are none
{%- if o.column().is_some() %}.
  The row keeps its value. Call this when you delete the row, because counts without a row stay{% endif %}
{%- if o.in_steps() %}. It deletes one slot in each statement.
  Outside of a transaction, it repeats a statement that conflicts with another node.
{%- else %}.
  In REPEATABLE READ, it can wait for slots of neighbouring records, and their first increments for it, until COMMIT.
{%- endif %}
Parameters: {{ sql.key("{p}", ", ") }}, the key of the record
Errors: 1264, 1265, 1292, 1366, 1406 invalid argument; 1205, 1213
{%- if o.cluster %}, 3101, 1180{% endif %} repeat the transaction
Example: CALL {{ sql.name.typed() }}({{ sql.example() }});
{%- endfilter %}
{% if o.in_steps() -%}
CALL {{ sql.routine(R::Steps) }}('delete', {{ sql.key("{p}", ", ") }}, NULL)
{%- else -%}
{{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF, sql_safe_updates=OFF FOR\n") -}}
DELETE FROM {{ o.table }} WHERE {{ sql.key("{} = {p}", " AND ") }}{% endif %}
