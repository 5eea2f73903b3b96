-- One row for each counter: the usual way to count, without slots.

-- name: setup
-- Parameters: none
CREATE TABLE single_row (
  id INT NOT NULL PRIMARY KEY,
  counter BIGINT NOT NULL
)
  ENGINE = InnoDB;

-- name: fill
-- Parameters: counter
INSERT INTO single_row (id, counter)
VALUES (?, 0);

-- name: increment
-- Parameters: amount, counter
UPDATE single_row
   SET counter = counter + ?
 WHERE id = ?;

-- name: read
-- Parameters: counter
SELECT counter
  FROM single_row
 WHERE id = ?;

-- name: total
-- Parameters: none
SELECT SUM(counter)
  FROM single_row;
