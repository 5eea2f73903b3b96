-- A private row for each connection: what the server can do where nobody waits for anybody.

-- name: setup
-- Parameters: none
CREATE TABLE floor (
  connection INT NOT NULL PRIMARY KEY,
  counter BIGINT NOT NULL
)
  ENGINE = InnoDB;

-- name: fill
-- Parameters: connection
INSERT INTO floor (connection, counter)
VALUES (?, 0);

-- name: increment
-- Parameters: amount, connection
UPDATE floor
   SET counter = counter + ?
 WHERE connection = ?;

-- name: read
-- Parameters: connection
SELECT counter
  FROM floor
 WHERE connection = ?;

-- name: total
-- Parameters: none
SELECT SUM(counter)
  FROM floor;
