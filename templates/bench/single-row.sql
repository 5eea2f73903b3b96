-- One row that all connections update: the usual way to count

-- setup
CREATE TABLE single_row (
  id INT NOT NULL PRIMARY KEY,
  counter BIGINT NOT NULL
) ENGINE = InnoDB;

INSERT INTO single_row (id, counter) VALUES (1, 0);

-- increment
UPDATE single_row
   SET counter = counter + 1
 WHERE id = 1;

-- read
SELECT counter FROM single_row WHERE id = 1;

-- total
SELECT SUM(counter) FROM single_row;
