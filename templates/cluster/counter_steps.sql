{% import "macros.sql" as m -%}
{{ sql.create("PROCEDURE") }}(IN p_routine VARCHAR(64) CHARACTER SET utf8mb4,
  IN p_counter_name {{ sql.key("{type}", "") }},
  IN p_slots INT,
  IN p_value BIGINT,
  IN p_restart BOOLEAN)
  SQL SECURITY {{ o.security.sql() }}
  COMMENT 'Private. Resets, resizes or deletes a counter, one slot in each statement: a change of all slots would
  conflict with the writers of other nodes. Outside of a transaction, it repeats a statement at most 20 times.'
BEGIN
  DECLARE v_slot, v_home INT;
  DECLARE v_tries INT DEFAULT 0;
  DECLARE v_in_transaction BOOLEAN DEFAULT TRUE;

  {{ m::outside_of_transaction(o, "v_in_transaction = FALSE") }}
  CALL {{ sql.routine(R::MustExist) }}(p_routine, p_counter_name);
  {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n  ") -}}
  SELECT GREATEST(MAX(counter_id), COALESCE(p_slots, 1)),
         1 + MOD(@@GLOBAL.auto_increment_offset - 1, @@GLOBAL.auto_increment_increment)
    INTO v_slot, v_home
    FROM {{ o.table }} WHERE counter_name = p_counter_name FOR UPDATE;
  WHILE v_slot > 0 DO
    BEGIN
      DECLARE EXIT HANDLER FOR 1213, 3101, 1180
        BEGIN
          SET v_tries = v_tries + 1;
          IF v_in_transaction OR v_tries > 20 THEN RESIGNAL; END IF;
          DO SLEEP(0.01);
        END;

      -- The slot that the last step of a resize has given a negative number.
      {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF, sql_safe_updates=OFF FOR\n      ") -}}
      DELETE FROM {{ o.table }}
       WHERE counter_name = p_counter_name AND counter_id < 1;
      IF p_routine = '{{ sql.routine(R::Reset).name() }}' THEN
        {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n        ") -}}
        UPDATE {{ o.table }}
           SET counter = IF(counter_id = 1, COALESCE(p_value, 0), 0),
               start_date = IF(p_restart, NOW(), start_date)
         WHERE counter_name = p_counter_name AND counter_id = v_slot;
      ELSEIF p_routine = '{{ sql.routine(R::Delete).name() }}' THEN
        -- With slot 1, also the slots that a resize has inserted meanwhile.
        {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n        ") -}}
        DELETE FROM {{ o.table }}
         WHERE counter_name = p_counter_name AND (counter_id = v_slot OR v_slot = 1);
      ELSEIF v_slot > p_slots THEN
        -- Moves the count into the lowest slot of this node, and gives the slot a negative number.
        {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n        ") -}}
        INSERT INTO {{ o.table }} (counter_name, counter_id, start_date, counter)
        SELECT p_counter_name, slot, NOW(), moved
          FROM (
            SELECT slot, IF(slot = v_home, SUM(amount) OVER (), 0) AS moved, MIN(slot) OVER () AS lowest
              FROM (
                SELECT counter_id AS slot, counter AS amount FROM {{ o.table }}
                 WHERE counter_name = p_counter_name AND counter_id IN (v_home, v_slot)
                   FOR UPDATE
              ) AS locked
          ) AS folded
         WHERE lowest = v_home
        ON DUPLICATE KEY UPDATE counter = moved, counter_id = IF(slot = v_home, slot, -slot);
      ELSE
        -- Inserts the slot, unless it is there.
        {{ sql.on_mariadb("SET STATEMENT innodb_snapshot_isolation=OFF FOR\n        ") -}}
        INSERT INTO {{ o.table }} (counter_name, counter_id, description, start_date, counter)
        SELECT counter_name, v_slot, description, start_date, 0
          FROM (SELECT * FROM {{ o.table }} WHERE counter_name = p_counter_name AND counter_id = 1 FOR UPDATE) AS slot_1
        ON DUPLICATE KEY UPDATE counter = {{ o.table }}.counter;
      END IF;
      SET v_slot = v_slot - 1, v_tries = 0;
    END;
  END WHILE;
END
