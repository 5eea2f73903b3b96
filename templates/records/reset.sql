{{ sql.create("PROCEDURE") }}({{ sql.key("IN {p} {type}", ",\n  ") }},
  IN p_value BIGINT)
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Sets the total of a record:
{%- if o.in_steps() %} slot 0 gets the value, all other slots get 0, one slot in each statement.
  Outside of a transaction, it repeats a statement that conflicts with another node; others can read a part.
{%- else %} its lowest slot gets the value, all other slots get 0. Locks all slots.
  In a REPEATABLE READ transaction, the first increments of neighbouring records wait until COMMIT: call it last.
  After KILL, a transaction can be open: ROLLBACK.{% endif %}
Parameters: {{ sql.key("{p}", ", ") }}, the key of the record; p_value, the new total, NULL means 0
Errors: 1048, 1264, 1265, 1292, 1366, 1406 invalid argument; 1205, 1213
{%- if o.cluster %}, 3101, 1180{% endif %} repeat the transaction
Example: CALL {{ sql.name.typed() }}({{ sql.example() }}, 0);
{%- endfilter %}
{% if o.in_steps() -%}
CALL {{ sql.routine(R::Steps) }}('reset', {{ sql.key("{p}", ", ") }}, p_value)
{%- else -%}
{{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF, sql_safe_updates=OFF FOR\n") -}}
CALL {{ sql.routine(R::Maintain) }}('reset', {{ sql.key("{p}", ", ") }}, p_value){% endif %}
