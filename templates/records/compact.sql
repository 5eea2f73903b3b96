{{ sql.create("PROCEDURE") }}({{ sql.key("IN {p} {type}", ",\n  ") }})
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
{% if o.in_steps() -%}
Moves the counts of a record to slot 0 and deletes the slots that are 0, one slot in each statement.
  Outside of a transaction, it repeats a statement that conflicts with another node.
{%- else -%}
Moves the counts of a record to its lowest slot and deletes the slots that are 0. The total stays the same.
  In a REPEATABLE READ transaction, the first increments of neighbouring records wait until COMMIT: call it last.
  After KILL, a transaction can be open: ROLLBACK.{% endif %}
Parameters: {{ sql.key("{p}", ", ") }}, the key of the record
Errors: 1264, 1265, 1292, 1366, 1406 invalid argument; 1264 the total is out of range; 1205, 1213
{%- if o.cluster %}, 3101, 1180{% endif %} call again
Example: CALL {{ sql.name.typed() }}({{ sql.example() }});
{%- endfilter %}
{% if o.in_steps() -%}
CALL {{ sql.routine(R::Steps) }}('compact', {{ sql.key("{p}", ", ") }}, NULL)
{%- else -%}
{{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF, sql_safe_updates=OFF FOR\n") -}}
CALL {{ sql.routine(R::Maintain) }}('compact', {{ sql.key("{p}", ", ") }}, NULL){% endif %}
