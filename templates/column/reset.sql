{%- let of = o.column().expect("the package has a column") -%}
{{ sql.create("PROCEDURE") }}({{ sql.key("IN {p} {type}", ",\n  ") }},
  IN p_value BIGINT)
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Sets the total of a record: slot 0 gets p_value minus the column and the other slots. The next roll-up moves it.
  Waits for the row, then the slots. In a REPEATABLE READ transaction, first increments of neighbouring records wait
  until COMMIT. If the record has no row, inserts of rows next to it wait, too.
{%- if o.cluster %}
  Outside of a transaction each slot commits by itself. The node with auto_increment_offset 1 moves slot 0.{% endif %}
Parameters: {{ sql.key("{p}", ", ") }}, the key of the record; p_value, the new total; NULL means 0
Errors: 1048, 1264, 1265, 1292, 1366, 1406 the key is NULL or does not fit; 1264 the count is out of range
  1205, 1213{% if o.cluster %}, 1180, 3101{% endif %} lock wait timeout, deadlock
{%- if o.cluster %}, conflict with another node{% endif %}: repeat the transaction. After KILL: ROLLBACK
Example: CALL {{ sql.name.typed() }}({{ sql.example() }}, 100);
{%- endfilter %}
{%- if o.cluster %}
BEGIN
  CALL {{ sql.routine(R::Steps) }}('reset', {{ sql.key("{p}", ", ") }}, 0);
  {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR ") -}}
  CALL {{ sql.routine(R::Maintain) }}('reset', {{ sql.key("{p}", ", ") }}, p_value);
END
{%- else %}
{{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR ") -}}
CALL {{ sql.routine(R::Maintain) }}('reset', {{ sql.key("{p}", ", ") }}, p_value)
{%- endif %}
