{{ sql.create("FUNCTION") }}(p_counter_name {{ sql.key("{type}", "") }})
  RETURNS BIGINT
  READS SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Returns the total of a counter, which is the sum of its slots. Locks nothing.
  In a transaction at REPEATABLE READ, it sums the snapshot and what the transaction itself has changed. That is wrong
  if another session has moved counts since (
{%- if o.is_bounded() %}take, {% endif %}resize, reset): read before your changes or after COMMIT.
  Unless binlog_format is ROW, SET @t = {{ sql.name.typed() }}(..) locks slots until COMMIT.
  Use SELECT {{ sql.name.typed() }}(..) INTO @t.
Parameters: p_counter_name, the name of the counter
Errors: 30003 unknown counter; 1264 the total exceeds the range of BIGINT
Example: SELECT {{ sql.name.typed() }}({{ sql.example() }}) AS total;
{%- endfilter %}
BEGIN
  DECLARE v_total BIGINT;

  {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n  ") -}}
  SELECT SUM(counter) INTO v_total FROM {{ o.table }} WHERE counter_name = p_counter_name AND counter_id > 0;
  IF v_total IS NULL THEN
    CALL {{ sql.routine(R::Fail) }}(30003, CONCAT('{{ sql.name.name() }}: unknown counter ', QUOTE(p_counter_name)));
  END IF;
  RETURN v_total;
END
