-- One row of stock: an UPDATE takes a piece if there is one
-- What has been taken is the total, so it grows by 1 with each take.

-- setup
CREATE TABLE stock (
  id INT NOT NULL PRIMARY KEY,
  quantity BIGINT NOT NULL
) ENGINE = InnoDB;

INSERT INTO stock (id, quantity) VALUES (1, 1000000000000);

-- increment
UPDATE stock
   SET quantity = quantity - 1
 WHERE id = 1
   AND quantity >= 1;

-- read
SELECT quantity FROM stock WHERE id = 1;

-- total
SELECT -SUM(quantity) FROM stock;
