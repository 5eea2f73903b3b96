-- Each connection updates a row of its own, so no connection waits for a row lock. The other contenders are compared to
-- this one.

-- name: setup
-- Parameters: none
CREATE TABLE uncontended (
  connection INT NOT NULL PRIMARY KEY,
  counter BIGINT NOT NULL
)
  ENGINE = InnoDB;

-- name: fill
-- Parameters: connection
INSERT INTO uncontended (connection, counter)
VALUES (?, 0);

-- name: increment
-- Parameters: amount, connection
UPDATE uncontended
   SET counter = counter + ?
 WHERE connection = ?;

-- name: read
-- Parameters: connection
SELECT counter
  FROM uncontended
 WHERE connection = ?;

-- name: total
-- Parameters: none
SELECT SUM(counter)
  FROM uncontended;
