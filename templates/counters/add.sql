{% import "macros.sql" as m -%}
{{ sql.create("PROCEDURE") }}(IN p_counter_name {{ sql.key("{type}", "") }},
  IN p_amount BIGINT)
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Adds an amount to a counter, in the transaction of the caller, if there is one. Locks one slot until COMMIT.
{%- if o.is_bounded() %}
  It has no upper bound. A negative amount is a take: see {{ sql.routine(R::Take).name() }}.
{%- endif %}{% if o.per_counter() %}
  In a trigger, it also locks the highest slot, unless binlog_format is ROW.{% endif %}
Parameters: p_counter_name, the name of the counter; p_amount, positive, negative or 0, which also locks slot 1
Errors: 30003 unknown counter{% if o.is_bounded() %}; 30016 not enough{% endif %}
  30021 not counted:
{%- if o.mariadb() %} interrupted, or{% endif %} the counter was deleted and created again at the same time; call again
  1048, 1264 p_amount is NULL or out of range; 1690 the slot would exceed the range of BIGINT
  1205, 1213 lock wait timeout, deadlock: repeat the transaction
Example: CALL {{ sql.name.typed() }}({{ sql.example() }}, 10);
{%- endfilter %}
{% if o.is_bounded() %}addition: {% endif %}BEGIN{% if o.per_counter() %}
  DECLARE v_slot INT;

{% if o.is_bounded() %}  IF p_amount < 0 THEN
    CALL {{ sql.routine(R::Take) }}(p_counter_name, -p_amount);
    LEAVE addition;
  END IF;
{% endif %}  {{ m::select_slot(sql, o) }}{% endif %}
  {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n  ") -}}
  UPDATE {{ o.table }}
     SET counter = counter + p_amount
   WHERE counter_name = p_counter_name
     AND counter_id = {% if o.per_counter() %}v_slot{% else %}{{ m::slot(o, "1 + ", o.setup_slots()) }}{% endif %};
  IF ROW_COUNT() = 0 THEN CALL {{ sql.routine(R::AddElsewhere) -}}
    ('{{ sql.name.name() }}', p_counter_name, p_amount); END IF;
END
