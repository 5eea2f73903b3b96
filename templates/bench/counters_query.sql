-- The SELECT of the number of slots and the UPDATE of one slot of a named counter, in a procedure with no other statement.
-- The table is the one of the package counters. The caller passes the slot number, so the result of the SELECT is not
-- used. A read calls a function that returns the SUM.

-- name: procedure
-- Parameters: none
DELIMITER ;;
CREATE PROCEDURE counters_query_add(
  IN p_counter_name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci,
  IN p_slot INT,
  IN p_amount BIGINT
)
  MODIFIES SQL DATA
BEGIN
  DECLARE v_slots BIGINT;
  SELECT MAX(counter_id)
    INTO v_slots
    FROM counters_query
   WHERE counter_name = LEFT(p_counter_name, 100);
  UPDATE counters_query
     SET counter = counter + p_amount
   WHERE counter_name = p_counter_name
     AND counter_id = p_slot;
END;;
DELIMITER ;

-- name: function
-- Parameters: none
DELIMITER ;;
CREATE FUNCTION counters_query_get(p_counter_name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci)
  RETURNS BIGINT
  READS SQL DATA
BEGIN
  DECLARE v_total BIGINT;
  SELECT SUM(counter)
    INTO v_total
    FROM counters_query
   WHERE counter_name = p_counter_name;
  RETURN v_total;
END;;
DELIMITER ;

-- name: fill
-- Parameters: name, slot
INSERT INTO counters_query (counter_name, counter_id, start_date, counter)
VALUES (?, ?, NOW(), 0);

-- name: increment
-- Parameters: name, slot, amount
CALL counters_query_add(?, ?, ?);

-- name: read
-- Parameters: name
SELECT counters_query_get(?);

-- name: total
-- Parameters: none
SELECT SUM(counter)
  FROM counters_query;
