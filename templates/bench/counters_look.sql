-- What a procedure that looks up the number of slots can reach: the package's table, and a procedure that has nothing but
-- the look-up and the UPDATE of a slot that its caller picks. A read is by a function that has nothing but the SUM.

-- name: procedure
-- Parameters: none
DELIMITER ;;
CREATE PROCEDURE counters_look_add(
  IN p_counter_name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci,
  IN p_slot INT,
  IN p_amount BIGINT
)
  MODIFIES SQL DATA
BEGIN
  DECLARE v_slots BIGINT;
  SELECT MAX(counter_id)
    INTO v_slots
    FROM counters_look
   WHERE counter_name = LEFT(p_counter_name, 100);
  UPDATE counters_look
     SET counter = counter + p_amount
   WHERE counter_name = p_counter_name
     AND counter_id = p_slot;
END;;
DELIMITER ;

-- name: function
-- Parameters: none
DELIMITER ;;
CREATE FUNCTION counters_look_get(p_counter_name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci)
  RETURNS BIGINT
  READS SQL DATA
BEGIN
  DECLARE v_total BIGINT;
  SELECT SUM(counter)
    INTO v_total
    FROM counters_look
   WHERE counter_name = p_counter_name;
  RETURN v_total;
END;;
DELIMITER ;

-- name: fill
-- Parameters: name, slot
INSERT INTO counters_look (counter_name, counter_id, start_date, counter)
VALUES (?, ?, NOW(), 0);

-- name: increment
-- Parameters: name, slot, amount
CALL counters_look_add(?, ?, ?);

-- name: read
-- Parameters: name
SELECT counters_look_get(?);

-- name: total
-- Parameters: none
SELECT SUM(counter)
  FROM counters_look;
