{% import "macros.sql" as m -%}
{% let slots = sql.slots("p_slots") -%}
{{ sql.create("PROCEDURE") }}(IN p_counter_name {{ sql.key("{type}", "") }},
  IN p_slots INT)
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
{% if o.per_counter() -%}
Changes the number of slots of a counter.
{%- else -%}
Gives a counter {{ slots }} slots if it has another number.
{%- endif %} The total stays the same, and no increment is lost.
{%- if o.in_steps() %}
  It changes one slot in each statement. Outside of a transaction, it repeats a statement that conflicts with a node.
{%- else %}
  It waits for transactions that have changed the counter. If a call is interrupted, call it again.{% endif %}
Parameters: p_counter_name, the name of the counter
  p_slots, {% if o.per_counter() %}the new number of slots, 1 to {{ MAX_SLOTS }}{% else %}NULL or {{ slots }}{% endif %}
Errors: 30003 unknown counter;
{%- if o.per_counter() %} 30005 p_slots is not between 1 and {{ MAX_SLOTS }}
{%- else %} 30006 p_slots is neither NULL nor {{ slots }}{% endif %}
{%- if o.cluster %}
  30018 the counter would have fewer slots than the cluster has nodes{% endif %}
  1205, 1213, 1062{% if o.cluster %}, 3101, 1180{% endif %} lock wait timeout, deadlock, another resize
{%- if o.cluster %}, conflict of nodes{% endif %}: repeat the transaction
Example: CALL {{ sql.name.typed() }}({{ sql.example() }}, {% if o.per_counter() %}64{% else %}NULL{% endif %});
{%- endfilter %}
BEGIN
  {{ m::check_slots(sql, o, "COALESCE(p_slots, 0)") }}{% if o.in_steps() %}
  CALL {{ sql.routine(R::Steps) }}('{{ sql.name.name() }}', p_counter_name, {{ slots }}, NULL, NULL);
END{% else %}
  CALL {{ sql.routine(R::MustExist) }}('{{ sql.name.name() }}', p_counter_name);

  -- Deletes the negative slots that an interrupted resize has left, but never a count.
  {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF, sql_safe_updates=OFF FOR\n  ") -}}
  DELETE FROM {{ o.table }}
   WHERE counter_name = p_counter_name AND counter_id < 1 AND counter = 0;
  -- Shrinks in one statement: adds the slots above {{ slots }} to slot 1, and gives them the count 0 and negative
  -- numbers, which no increment selects. All rows exist, so the INSERT only updates; an UPDATE would lock all slots.
  -- Needs slot 1 (first = 1).
  {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n  ") -}}
  INSERT INTO {{ o.table }} (counter_name, counter_id, start_date, counter)
  SELECT p_counter_name, slot, NOW(), share
    FROM (
      SELECT slot, IF(slot = 1, SUM(amount) OVER (), 0) AS share, MIN(slot) OVER () AS first
        FROM (
          (SELECT counter_id AS slot, counter AS amount FROM {{ o.table }}
            WHERE counter_name = p_counter_name AND counter_id = 1
              FOR UPDATE)
          UNION ALL
          (SELECT counter_id, counter FROM {{ o.table }}
            WHERE counter_name = p_counter_name AND counter_id > {{ slots }}
            -- DESC: ASC would also lock slot 1 of the next counter. LIMIT: without it, UNION ignores ORDER BY.
            ORDER BY counter_id DESC
            LIMIT {{ MAX_SLOTS }}
              FOR UPDATE)
        ) AS locked
    ) AS folded
   WHERE first = 1
  ON DUPLICATE KEY UPDATE counter = share, counter_id = IF(slot = 1, 1, -slot);
  {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF, sql_safe_updates=OFF FOR\n  ") -}}
  DELETE FROM {{ o.table }}
   WHERE counter_name = p_counter_name AND counter_id < 1 AND counter = 0;
  -- Grows; existing slots stay as they are. Locks slot 1, because a delete meanwhile could leave slots without slot 1.
  {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n  ") -}}
  INSERT INTO {{ o.table }} (counter_name, counter_id, description, start_date, counter)
  SELECT counter_name, number, description, start_date, 0
    FROM (SELECT counter_name, description, start_date FROM {{ o.table }}
           WHERE counter_name = p_counter_name AND counter_id = 1 FOR UPDATE) AS slot_1
   CROSS JOIN {{ m::numbers(slots) }} AS n
   WHERE number > 1
  ON DUPLICATE KEY UPDATE counter = counter;
END{% endif %}
