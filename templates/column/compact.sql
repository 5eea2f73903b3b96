{%- let of = o.column.as_ref().expect("the package has a column") -%}
{{ sql.create("PROCEDURE") }}(
  {{ sql.key("IN {p} {type}", ",\n  ") }}
)
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Moves the pending counts of one record into {{ of }}. Waits for transactions that have locked them or the row.{% if o.cluster %}
  Call it on each node: a node moves the slots that it writes.{% endif %}
Parameters: {{ sql.key("{p}", ", ") }}, the key of the record
Errors: 30013 {{ of }} rejects the total of the record: its counts stay pending{% if !o.mariadb() %}; 30022 hypergraph_optimizer=on{% endif %}
  1205, 1213 lock wait timeout, deadlock: nothing was moved; in a transaction, repeat the transaction
Example: CALL {{ sql.name.typed() }}({{ sql.example() }});
{%- endfilter %}
BEGIN
  DECLARE v_rejected VARCHAR(512) CHARACTER SET utf8mb4;

  CALL {{ sql.routine(R::Move) }}({{ sql.key("{p}", ", ") }}, 1, TRUE, v_rejected);
  IF v_rejected IS NOT NULL THEN
    CALL {{ sql.routine(R::Fail) }}(30013,
      CONCAT({% filter sql_string %}{{ sql.name.name() }}: {{ of }} rejects the total of {% endfilter %}, CONCAT_WS(', ', {{ sql.key("{p text}", ", ") }}), ': ', v_rejected));
  END IF;
END
