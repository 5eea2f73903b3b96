{% import "macros.sql" as m -%}
{{ sql.create("PROCEDURE") }}(IN p_step VARCHAR(7) CHARACTER SET utf8mb4,
  {{ sql.key("IN {p} {type}", ",\n  ") }},
  IN p_value BIGINT)
  SQL SECURITY {{ o.security.sql() }}
  COMMENT 'Private. Resets, compacts or deletes a record, one slot in each statement: a change of all slots would
  conflict with the writers of other nodes. Outside of a transaction, it repeats a statement at most 20 times.'
BEGIN
  DECLARE v_slot INT DEFAULT 65536;
  DECLARE v_next INT;
  DECLARE v_tries INT DEFAULT 0;
  DECLARE v_in_transaction BOOLEAN DEFAULT TRUE;

  {{ m::outside_of_transaction(o, "v_in_transaction = FALSE") }}
  WHILE v_slot > 0 DO
    BEGIN
      DECLARE EXIT HANDLER FOR 1213, 3101, 1180
        BEGIN
          SET v_tries = v_tries + 1;
          IF v_in_transaction OR v_tries > 20 THEN RESIGNAL; END IF;
          DO SLEEP(0.01);
        END;

      -- The highest slot that is left; slot 0 comes last, and a reset creates it.
      {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n      ") -}}
      SELECT COALESCE(MAX(slot), 0) INTO v_next
        FROM (
          SELECT slot FROM {{ o.table }}
           WHERE {{ sql.key("{} = {p}", " AND ") }} AND slot < v_slot
           ORDER BY slot DESC LIMIT 1 FOR UPDATE) AS highest;
      IF p_step = 'reset' THEN
        {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n        ") -}}
        INSERT INTO {{ o.table }} ({{ sql.key("{}", ", ") }}, slot, `count`)
        VALUES ({{ sql.key("{p}", ", ") }}, v_next, IF(v_next = 0, COALESCE(p_value, 0), 0))
        ON DUPLICATE KEY UPDATE `count` = IF(v_next = 0, COALESCE(p_value, 0), 0);
      ELSEIF p_step = 'compact' THEN
        {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n        ") -}}
        INSERT INTO {{ o.table }} ({{ sql.key("{}", ", ") }}, slot, `count`)
        SELECT {{ sql.key("{p}", ", ") }}, slot, moved
          FROM (
            SELECT slot, IF(slot = 0, SUM(amount) OVER (), 0) AS moved
              FROM (
                SELECT 0 AS slot, 0 AS amount
                UNION ALL
                (SELECT slot, `count` FROM {{ o.table }}
                  WHERE {{ sql.key("{} = {p}", " AND ") }} AND slot IN (0, v_next)
                  ORDER BY slot DESC LIMIT 2
                    FOR UPDATE)
              ) AS locked
          ) AS folded
        ON DUPLICATE KEY UPDATE `count` = folded.moved;
      END IF;
      {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF, sql_safe_updates=OFF FOR\n      ") -}}
      DELETE FROM {{ o.table }}
       WHERE {{ sql.key("{} = {p}", " AND ") }} AND slot = v_next
         AND (`count` = 0 AND p_step = 'compact' OR p_step = 'delete');
      SET v_slot = v_next, v_tries = 0;
    END;
  END WHILE;
END
