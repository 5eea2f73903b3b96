{{ sql.create("PROCEDURE") }}(IN p_counter_name {{ sql.key("{type}", "") }})
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Deletes a counter with all its slots
{%- if o.in_steps() %}, one slot in each statement. Do not resize it on another node meanwhile.
  Outside of a transaction, it repeats a statement that conflicts with another node.
{%- else %}.{% endif %}
Parameters: p_counter_name, the name of the counter
Errors: 30003 unknown counter
{%- if !o.in_steps() %}
  30021 not deleted:
{%- if o.mariadb() %} interrupted, or{% endif %} created by another session at the same time; call again
{%- endif %}
  1205, 1213{% if o.cluster %}, 3101, 1180{% endif %} lock wait timeout, deadlock
{%- if o.cluster %}, conflict with another node{% endif %}: repeat the transaction
Example: CALL {{ sql.name.typed() }}({{ sql.example() }});
{%- endfilter %}
{%- if o.in_steps() %}
CALL {{ sql.routine(R::Steps) }}('{{ sql.name.name() }}', p_counter_name, NULL, NULL, NULL){% else %}
BEGIN
  {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF, sql_safe_updates=OFF FOR\n  ") -}}
  DELETE FROM {{ o.table }} WHERE counter_name = p_counter_name;
  IF ROW_COUNT() = 0 THEN
    CALL {{ sql.routine(R::MustExist) }}('{{ sql.name.name() }}', p_counter_name);
    CALL {{ sql.routine(R::Fail) }}(30021, '{{ sql.name.name() }}: not deleted,
{%- if o.mariadb() %} interrupted or{% endif %} created at the same time');
  END IF;
END{% endif %}
