{%- let of = o.column().expect("the package has a column") -%}
{{ sql.create("PROCEDURE") }}({{ sql.key("IN {p} {type}", ",\n  ") }})
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Moves the pending counts of a record into {{ of }}, if it has a row. Waits for the row, then the slots.
  In REPEATABLE READ, first increments of neighbouring records and, without a row, inserts next to it wait until COMMIT.
{%- if o.cluster %}
  Call it on each node: a node moves the slots that it writes.{% endif %}
Parameters: {{ sql.key("{p}", ", ") }}, the key of the record; if it does not fit, 1264, 1265, 1292, 1366 or 1406
Errors: 30013 {{ of }} rejects the counts of the record, which stay pending
  1205, 1213{% if o.cluster %}, 1180, 3101{% endif %}, KILL: ROLLBACK, then repeat. COMMIT or BEGIN saves half a move.
Example: CALL {{ sql.name.typed() }}({{ sql.example() }});
{%- endfilter %}
{{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR ") -}}
CALL {{ sql.routine(R::Maintain) }}('compact', {{ sql.key("{p}", ", ") }}, NULL)
