{{ sql.create("PROCEDURE") }}(IN p_counter_name {{ sql.key("{type}", "") }},
  IN p_amount BIGINT,
  IN p_wait BOOLEAN,
  OUT p_taken BOOLEAN)
  SQL SECURITY {{ o.security.sql() }}
  COMMENT 'Private. Takes from slot 1 and all slots that are free or, with p_wait, from all slots. Spreads the rest, or
  leaves a small one in slot 1. p_taken: whether there was enough. If not, it changes nothing.
  {{- sql.on_mariadb("\n  It and its caller run with innodb_snapshot_isolation=OFF, which take sets.") }}'
BEGIN
  -- Locks slot 1, then the free slots or, with p_wait, all: p_wait makes the WHERE of the other SELECT impossible.
  -- The INSERT only updates these rows: a joined UPDATE would lock all slots.
  -- With binlog_format = STATEMENT, replicas skip no slot: they share differently, and a later take finds too little.
  INSERT INTO {{ o.table }} (counter_name, counter_id, start_date, counter)
  SELECT p_counter_name, slot, NOW(), 0
    FROM (
      SELECT slot,
             SUM(amount) OVER () - p_amount AS rest,
             COUNT(*) OVER () AS slots,
             MIN(slot) OVER () AS first,
             ROW_NUMBER() OVER (ORDER BY slot) AS number
        FROM (
          (SELECT counter_id AS slot, counter AS amount FROM {{ o.table }}
            WHERE counter_name = p_counter_name AND counter_id = 1
              FOR UPDATE)
          UNION ALL
          (SELECT counter_id, counter FROM {{ o.table }}
            WHERE counter_name = p_counter_name AND counter_id > 1 AND NOT p_wait
            -- DESC: ASC would also lock slot 1 of the next counter. LIMIT: without it, UNION ignores ORDER BY.
            ORDER BY counter_id DESC LIMIT {{ MAX_SLOTS }}
              FOR UPDATE SKIP LOCKED)
          UNION ALL
          (SELECT counter_id, counter FROM {{ o.table }}
            WHERE counter_name = p_counter_name AND counter_id > 1 AND p_wait
            ORDER BY counter_id DESC LIMIT {{ MAX_SLOTS }}
              FOR UPDATE)
        ) AS locked
    ) AS summed
   WHERE rest >= 0 AND first = 1
  -- Below 10 per locked slot, slot 1 gets all. Otherwise equal shares, and 1 more to the first: 32 in 3 are 11, 11, 10.
  ON DUPLICATE KEY UPDATE
    counter = IF(rest >= 10 * slots, (rest + slots - number) DIV slots, IF(slot = 1, rest, 0))
{%- if o.cluster %} + IF(slot = 1, p_amount, 0);
  -- On Galera, ROW_COUNT() can be 0 after a committed statement that has locked more rows than it has changed.
  UPDATE {{ o.table }}
     SET counter = counter - p_amount
   WHERE counter_name = p_counter_name AND counter_id = 1 AND counter >= p_amount;
{%- else %};{% endif %}
  SET p_taken = ROW_COUNT() > 0; -- p_amount >= 1, so at least one row has changed
END
