-- Each connection updates a row of its own: no lock waits, the reference for all others

-- setup
CREATE TABLE uncontended (
  connection INT NOT NULL PRIMARY KEY,
  counter BIGINT NOT NULL
) ENGINE = InnoDB;

INSERT INTO uncontended (connection, counter)
WITH RECURSIVE connections AS (
  SELECT 1 AS number
  UNION ALL
  SELECT number + 1 FROM connections WHERE number < {connections}
)
SELECT number, 0 FROM connections;

-- increment
UPDATE uncontended
   SET counter = counter + 1
 WHERE connection = {connection};

-- read
SELECT counter FROM uncontended WHERE connection = {connection};

-- total
SELECT SUM(counter) FROM uncontended;
