{%- let of = o.column().expect("the package has a column") -%}
{%- let row = sql.key("parent.{} = {p}", " AND ") -%}
{%- let slots = sql.key("slots.{} = {p}", " AND ") -%}
{{ sql.create("FUNCTION") }}({{ sql.key("{p} {type}", ",\n  ") }})
  RETURNS BIGINT
  READS SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Returns the total of a record: the column and its pending counts. Without a row, it is the pending counts.
  In REPEATABLE READ, after an own change of row or slot, a move since the snapshot can be missing or count twice.
  SET @t = {{ sql.name.typed() }}(..) locks rows until COMMIT unless binlog_format is ROW: SELECT it INTO @t.
Parameters: {{ sql.key("{p}", ", ") }}, the key of the record
Errors: 1264 the total exceeds the range of BIGINT
Example: SELECT {{ sql.name.typed() }}({{ sql.example() }}) AS total;
{%- endfilter %}
BEGIN
  DECLARE v_total BIGINT;
  {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n  ") -}}
  SELECT COALESCE((SELECT parent.{{ of.column }} FROM {{ of.table }} AS parent WHERE {{ row }}), 0)
       + COALESCE((SELECT SUM(slots.`count`) FROM {{ o.table }} AS slots WHERE {{ slots }}), 0)
    INTO v_total;
  RETURN v_total;
END
