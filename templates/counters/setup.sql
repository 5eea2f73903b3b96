{% import "macros.sql" as m -%}
{% let slots = sql.slots("p_slots") -%}
{{ sql.create("PROCEDURE") }}(IN p_counter_name {{ sql.key("{type}", "") }},
  IN p_description {{ sql.varchar(DESCRIPTION_MAX) }},
  IN p_slots INT,
  IN p_value BIGINT)
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Creates a counter with all its slots.
Parameters: p_counter_name, at most {{ NAME_MAX }} characters, compared by the collation {{ o.collation() }}
  p_description, at most {{ DESCRIPTION_MAX }} characters, or NULL
{%- if !o.per_counter() %}
  p_slots, NULL or {{ slots }}, because every counter of this package has {{ slots }} slots
{%- else %}
  p_slots, 1 to {{ MAX_SLOTS }}, NULL means {{ o.setup_slots() }}
{%- if o.is_bounded() %}; choose p_value / 30, at most 4 for each connection. Takes
  spread p_value over the slots; below 10 in each slot, they leave all in slot 1
{%- else if o.cluster %}, or the number of nodes if it is greater
{%- else %}; choose 4 slots for each connection that counts at the same time
{%- endif %}
{%- endif %}
  p_value, the initial total, NULL means 0
Errors: 30004 the counter exists;
{%- if o.per_counter() %} 30005 p_slots is not between 1 and {{ MAX_SLOTS }}
{%- else %} 30006 p_slots is neither NULL nor {{ slots }}{% endif %}
{%- if o.cluster %}
  30018 the counter would have fewer slots than the cluster has nodes{% endif %}
{%- if o.is_bounded() %}
  {% if o.mariadb() %}4025{% else %}3819{% endif %} p_value is less than 0{% endif %}
  1048, 1264, 1406 an argument is NULL, out of range or too long
  1205, 1213 another transaction that has changed this name is open, or has just rolled back: repeat the transaction
Example: CALL {{ sql.name.typed() }}({{ sql.example() }}, 'Description', NULL,
{%- if o.is_bounded() %} 500{% else %} NULL{% endif %});
{%- endfilter %}
BEGIN
  DECLARE EXIT HANDLER FOR 1062
    CALL {{ sql.routine(R::Fail) -}}
    (30004, CONCAT('{{ sql.name.name() }}: there is already a counter ', QUOTE(p_counter_name)));
{% if o.per_counter() && o.in_steps() %}
  SET p_slots = COALESCE(p_slots, GREATEST({{ o.setup_slots() }}, @@GLOBAL.auto_increment_increment));
{%- else if o.per_counter() %}
  SET p_slots = COALESCE(p_slots, {{ o.setup_slots() }});{% endif %}
  {{ m::check_slots(sql, o, "p_slots") }}
  -- JSON_TABLE returns the numbers of the slots, because a recursive query stops at 1,000.
{%- if o.mariadb() %}
  SET STATEMENT innodb_snapshot_isolation=OFF
{%- if o.is_bounded() %}, check_constraint_checks=ON{% endif %} FOR
{%- endif %}
  INSERT INTO {{ o.table }} (counter_name, counter_id, description, start_date, counter)
  SELECT p_counter_name, number, p_description, NOW(), IF(number = 1, COALESCE(p_value, 0), 0)
    FROM {{ m::numbers(slots) }} AS n;
END
