{{ sql.create("FUNCTION") }}({{ sql.key("{p} {type}", ",\n  ") }})
  RETURNS BIGINT
  READS SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Returns the total of a record, which is the sum of its slots, 0 without slots. Locks nothing.
  In REPEATABLE READ, it reads the snapshot of the transaction, and what the transaction itself has changed.
  Unless binlog_format is ROW, SET @t = {{ sql.name.typed() }}(..) locks slots until COMMIT.
  Use SELECT {{ sql.name.typed() }}(..) INTO @t.
Parameters: {{ sql.key("{p}", ", ") }}, the key of the record
Errors: 1264 the total exceeds the range of BIGINT
Example: SELECT {{ sql.name.typed() }}({{ sql.example() }}) AS total;
{%- endfilter %}
BEGIN
  DECLARE v_total BIGINT;

  {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n  ") -}}
  SELECT COALESCE(SUM(`count`), 0) INTO v_total
    FROM {{ o.table }} WHERE {{ sql.key("{} = {p}", " AND ") }};
  RETURN v_total;
END
