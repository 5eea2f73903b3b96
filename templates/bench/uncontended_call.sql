-- The UPDATE of the contender uncontended in a procedure with no other statement. The difference to uncontended is the
-- cost of CALL.

-- name: setup
-- Parameters: none
CREATE TABLE uncontended_call (
  connection INT NOT NULL PRIMARY KEY,
  counter BIGINT NOT NULL
)
  ENGINE = InnoDB;

-- name: procedure
-- Parameters: none
CREATE PROCEDURE uncontended_call_add(IN p_connection INT, IN p_amount BIGINT)
  MODIFIES SQL DATA
UPDATE uncontended_call
   SET counter = counter + p_amount
 WHERE connection = p_connection;

-- name: fill
-- Parameters: connection
INSERT INTO uncontended_call (connection, counter)
VALUES (?, 0);

-- name: increment
-- Parameters: connection, amount
CALL uncontended_call_add(?, ?);

-- name: read
-- Parameters: connection
SELECT counter
  FROM uncontended_call
 WHERE connection = ?;

-- name: total
-- Parameters: none
SELECT SUM(counter)
  FROM uncontended_call;
