-- Not part of the package: bounded_slotted_counter_take with an upsert in place of the UPDATE. See NOTES.md, "The shape".

/*!80000 DROP PROCEDURE IF EXISTS `bounded_slotted_counter_take` */;

DELIMITER ;;
CREATE /*M!100103 OR REPLACE */ PROCEDURE `bounded_slotted_counter_take`(
  IN p_record_type BIGINT,
  IN p_record_id BIGINT,
  IN p_amount BIGINT
)
  MODIFIES SQL DATA
  SQL SECURITY DEFINER
  COMMENT 'Description
  Takes an amount from a record. If the total is less than the amount, the call fails and changes nothing. A record without rows
  has 0. To put an amount back, call bounded_slotted_counter_add.
  The change is part of the transaction of the caller: COMMIT and ROLLBACK apply to it.
  The call takes from the slot of the connection. If this slot has less than the amount, other slots share what they have. The
  last counts are in slot 0, and calls wait for each other there.

Parameters
  p_record_type INT: key of the record
  p_record_id BIGINT: key of the record
  p_amount BIGINT: the amount, at least 1

Errors
  30009  column ''...'' cannot be NULL
  30010  value out of range or of wrong length for column ''...''
  30016  not enough: ... left
  30017  p_amount must be at least 1

Example
  CALL bounded_slotted_counter_take(123, 456, 2);'
take: BEGIN
  DECLARE v_slot BIGINT DEFAULT 1 + MOD(
          CONNECTION_ID() * @@GLOBAL.auto_increment_increment + @@GLOBAL.auto_increment_offset - 1,
          521 - MOD(521, @@GLOBAL.auto_increment_increment));
  DECLARE v_have BIGINT;
  DECLARE v_rows BIGINT;

  -- Reads the slot first: a statement that finds too little would keep a lock on it until the end of the transaction. An upsert,
  -- because it costs half of an UPDATE on MySQL.
  /*M!101108 SET STATEMENT innodb_snapshot_isolation=OFF FOR */
  SELECT MAX(`count`)
    INTO v_have
    FROM `bounded_slotted_counters`
   WHERE record_type = p_record_type
     AND record_id = p_record_id
     AND slot = v_slot;
  IF v_have >= p_amount AND p_amount > 0 THEN
    /*M!101108 SET STATEMENT innodb_snapshot_isolation=OFF FOR */
    INSERT INTO `bounded_slotted_counters` (record_type, record_id, slot, `count`)
    VALUES (p_record_type, p_record_id, v_slot, 0)
    ON DUPLICATE KEY UPDATE `count` = `count` - IF(`count` >= p_amount, p_amount, 0);
    SET v_rows = ROW_COUNT();
    IF v_rows = 2 THEN
      LEAVE take;
    END IF;
    -- Not changed: another connection has taken the counts. Inserted: it has deleted the slot.
    IF v_rows = 1 THEN
      /*M!101108 SET STATEMENT innodb_snapshot_isolation=OFF FOR */
      DELETE FROM `bounded_slotted_counters`
       WHERE record_type = p_record_type
         AND record_id = p_record_id
         AND slot = v_slot
         AND `count` = 0;
    END IF;
  END IF;
  CALL `_bounded_slotted_counter_take_elsewhere`(p_record_type, p_record_id, p_amount, v_slot);
END;;
DELIMITER ;

