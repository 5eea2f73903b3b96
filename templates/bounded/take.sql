{% import "macros.sql" as m -%}
{{ sql.create("PROCEDURE") }}(IN p_counter_name {{ sql.key("{type}", "") }},
  IN p_amount BIGINT)
  MODIFIES SQL DATA
  SQL SECURITY {{ o.security.sql() }}
  COMMENT {% filter sql_string -%}
Takes an amount from a counter. If the total is too small, it fails and changes nothing. To put an amount back, call
  {{ sql.routine(R::Add).typed() }}. Outside of a transaction, it fails at once, without a lock, if the committed
  total is too small. In a transaction, these locks last until it ends:
  - after a take, the slot of its connection, or slot 1, or slot 1 and the free slots, or all
  - after a rejection, all slots. Outside of READ COMMITTED, setup or resize of the neighbouring names can wait, too
  Other changes to these slots wait (1205). In a transaction or trigger, takes can deadlock (1213).
  In a trigger, it also locks the highest slot and, if its own has too little, all slots, unless binlog_format is ROW.
  With binlog_format = STATEMENT, totals of replicas become wrong: use ROW or MIXED.
Parameters: p_counter_name, the name of the counter; p_amount, at least 1
Errors: 30003 unknown counter; 30016 not enough; 30017 p_amount is less than 1 or NULL
  1205, 1213{% if o.cluster %}, 3101, 1180 conflict with another node{% endif %}: repeat the transaction
Example: CALL {{ sql.name.typed() }}({{ sql.example() }}, 2);
{%- endfilter %}
BEGIN
  DECLARE v_slot, v_have, v_rows BIGINT DEFAULT 0;

  -- Reads first: in a transaction, an UPDATE that finds too little keeps its lock. Without a row, MAX() avoids 1329.
  {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n  ") -}}
  SELECT MAX(counter_id), MAX(counter) INTO v_slot, v_have
    FROM {{ o.table }}
   WHERE counter_name = p_counter_name
     AND counter_id = (
       SELECT {{ m::slot(o, "1 + ", "MAX(counter_id)") }} FROM {{ o.table }}
        WHERE counter_name = p_counter_name);
  IF v_have >= p_amount AND p_amount > 0 THEN
    {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n    ") -}}
    UPDATE {{ o.table }}
       SET counter = counter - p_amount
     WHERE counter_name = p_counter_name AND counter_id = v_slot AND counter >= p_amount;
    SET v_rows = ROW_COUNT();
  END IF;
  IF v_rows < 1 THEN
    {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n    ") -}}
    CALL {{ sql.routine(R::TakeElsewhere) }}(p_counter_name, p_amount);
  END IF;
END
