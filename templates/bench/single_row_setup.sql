-- What everybody begins with: one row per counter.
CREATE TABLE single_row (
  id INT NOT NULL PRIMARY KEY,
  counter BIGINT NOT NULL
)
  ENGINE = InnoDB;
INSERT INTO single_row (id, counter) VALUES (1, 0);
