-- One row for each counter, which must not fall below 0. All connections that take from one counter wait for its row.

-- name: setup
-- Parameters: none
CREATE TABLE stock_row (
  id INT NOT NULL PRIMARY KEY,
  quantity BIGINT NOT NULL
)
  ENGINE = InnoDB;

-- name: fill
-- Parameters: counter
INSERT INTO stock_row (id, quantity)
VALUES (?, 1000000000000);

-- name: increment
-- Parameters: amount, counter, amount
UPDATE stock_row
   SET quantity = quantity - ?
 WHERE id = ?
   AND quantity >= ?;

-- name: read
-- Parameters: counter
SELECT quantity
  FROM stock_row
 WHERE id = ?;

-- name: total
-- Parameters: none
SELECT -SUM(quantity)
  FROM stock_row;
