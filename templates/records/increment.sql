{% import "macros.sql" as m -%}
{{ sql.create("PROCEDURE") }}({{ sql.key("IN {p} {type}", ",\n  ") }})
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Adds 1 to a record, in the transaction of the caller, if there is one. Locks one slot until its end.
Parameters: {{ sql.key("{p}", ", ") }}, the key of the record
Errors: 1048, 1264, 1265, 1292, 1366, 1406 invalid argument; 1690 count out of range; 1205, 1213 repeat the transaction
Example: CALL {{ sql.name.typed() }}({{ sql.example() }});
{%- endfilter %}
{{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n") -}}
INSERT INTO {{ o.table }} ({{ sql.key("{}", ", ") }}, slot, `count`)
VALUES ({{ sql.key("{p}", ", ") }}, {{ m::slot(o, "", o.setup_slots()) }}, 1)
ON DUPLICATE KEY UPDATE `count` = `count` + 1
