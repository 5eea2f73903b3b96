-- The floor's UPDATE in a procedure that has nothing else: what CALL takes, so what a procedure can reach at most that
-- counts by an UPDATE.

-- name: setup
-- Parameters: none
CREATE TABLE floor_call (
  connection INT NOT NULL PRIMARY KEY,
  counter BIGINT NOT NULL
)
  ENGINE = InnoDB;

-- name: procedure
-- Parameters: none
CREATE PROCEDURE floor_call_add(IN p_connection INT, IN p_amount BIGINT)
  MODIFIES SQL DATA
UPDATE floor_call
   SET counter = counter + p_amount
 WHERE connection = p_connection;

-- name: fill
-- Parameters: connection
INSERT INTO floor_call (connection, counter)
VALUES (?, 0);

-- name: increment
-- Parameters: connection, amount
CALL floor_call_add(?, ?);

-- name: read
-- Parameters: connection
SELECT counter
  FROM floor_call
 WHERE connection = ?;

-- name: total
-- Parameters: none
SELECT SUM(counter)
  FROM floor_call;
