-- The UPDATE of one slot of a named counter, in a procedure with no other statement. The table is the one of the package
-- counters. The caller passes the slot number. A read is a plain SUM over the table.

-- name: procedure
-- Parameters: none
CREATE PROCEDURE counters_call_add(
  IN p_counter_name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci,
  IN p_slot INT,
  IN p_amount BIGINT
)
  MODIFIES SQL DATA
UPDATE counters_call
   SET counter = counter + p_amount
 WHERE counter_name = p_counter_name
   AND counter_id = p_slot;

-- name: fill
-- Parameters: name, slot
INSERT INTO counters_call (counter_name, counter_id, start_date, counter)
VALUES (?, ?, NOW(), 0);

-- name: increment
-- Parameters: name, slot, amount
CALL counters_call_add(?, ?, ?);

-- name: read
-- Parameters: name
SELECT SUM(counter)
  FROM counters_call
 WHERE counter_name = ?;

-- name: total
-- Parameters: none
SELECT SUM(counter)
  FROM counters_call;
