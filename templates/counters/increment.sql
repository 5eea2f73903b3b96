{% import "macros.sql" as m -%}
{{ sql.create("PROCEDURE") }}(IN p_counter_name {{ sql.key("{type}", "") }})
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Adds 1 to a counter, in the transaction of the caller, if there is one. Locks one slot until COMMIT.
{%- if o.per_counter() %}
  In a trigger, it also locks the highest slot, unless binlog_format is ROW.{% endif %}
Parameters: p_counter_name, the name of the counter
Errors: 30003 unknown counter
  30021 not counted:
{%- if o.mariadb() %} interrupted, or{% endif %} the counter was deleted and created again at the same time; call again
  1205, 1213 lock wait timeout, deadlock: repeat the transaction; 1690 the slot would exceed the range of BIGINT
Example: CALL {{ sql.name.typed() }}({{ sql.example() }});
{%- endfilter %}
BEGIN{% if o.per_counter() %}
  DECLARE v_slot INT;

  {{ m::select_slot(sql, o) }}{% endif %}
  {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n  ") -}}
  UPDATE {{ o.table }}
     SET counter = counter + 1
   WHERE counter_name = p_counter_name
     AND counter_id = {% if o.per_counter() %}v_slot{% else %}{{ m::slot(o, "1 + ", o.setup_slots()) }}{% endif %};
  IF ROW_COUNT() = 0 THEN CALL {{ sql.routine(R::AddElsewhere) }}('{{ sql.name.name() }}', p_counter_name, 1); END IF;
END
