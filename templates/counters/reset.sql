{{ sql.create("PROCEDURE") }}(IN p_counter_name {{ sql.key("{type}", "") }},
  IN p_value BIGINT,
  IN p_restart BOOLEAN)
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Sets the total of a counter: slot 1 gets the value, all other slots get 0
{%- if o.in_steps() %}, one slot in each statement.
  Outside of a transaction, it repeats a statement that conflicts with another node; others can read a part.
{%- else %}. Locks all slots.
  A concurrent change takes effect before the reset, which overwrites it, or after the reset.{% if o.mariadb() %}
  KILL QUERY can end the call without an error and without effect.{% endif %}{% endif %}
Parameters: p_counter_name, the name of the counter; p_value, the new total, NULL means 0
  p_restart, TRUE sets start_date to NOW(), FALSE or NULL keeps it
Errors: 30003 unknown counter
{%- if o.is_bounded() %}; {% if o.mariadb() %}4025{% else %}3819{% endif %} p_value is less than 0{% endif %}
  1205, 1213{% if o.cluster %}, 3101, 1180{% endif %} lock wait timeout, deadlock
{%- if o.cluster %}, conflict with another node{% endif %}: repeat the transaction
Example: CALL {{ sql.name.typed() }}({{ sql.example() }}, 0, TRUE);
{%- endfilter %}
{%- if o.in_steps() %}
CALL {{ sql.routine(R::Steps) }}('{{ sql.name.name() }}', p_counter_name, NULL, p_value, p_restart){% else %}
BEGIN
{%- if o.mariadb() %}
  SET STATEMENT innodb_snapshot_isolation=OFF
{%- if o.is_bounded() %}, check_constraint_checks=ON{% endif %} FOR
{%- else %}
  -- Without slot 1, the UPDATE would lose p_value.
  CALL {{ sql.routine(R::MustExist) }}('{{ sql.name.name() }}', p_counter_name);
{%- endif %}
  UPDATE {{ o.table }}
     SET counter = IF(counter_id = 1, COALESCE(p_value, 0), 0),
         start_date = IF(p_restart, NOW(), start_date)
   WHERE counter_name = p_counter_name
{%- if o.mariadb() %}
     -- Without slot 1, the UPDATE would lose p_value. CALL would report a check before it as one more row.
     AND EXISTS (SELECT * FROM (SELECT counter_id FROM {{ o.table }}
           WHERE counter_name = p_counter_name AND counter_id = 1 FOR UPDATE) AS slot_1)
{%- endif %};
  IF ROW_COUNT() = 0 THEN CALL {{ sql.routine(R::MustExist) }}('{{ sql.name.name() }}', p_counter_name); END IF;
END{% endif %}
