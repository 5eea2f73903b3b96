-- The design of the 2012 article that the package counters comes from. COUNT(*) returns the number of slots, RAND()
-- selects one. The checks of the article's procedure are left out.

-- name: setup
-- Parameters: none
CREATE TABLE article_2012 (
  counter_name VARCHAR(50) NOT NULL,
  counter_id INT NOT NULL,
  counter BIGINT NOT NULL,
  PRIMARY KEY (counter_name, counter_id)
)
  ENGINE = InnoDB;

-- name: procedure
-- Parameters: none
DELIMITER ;;
CREATE PROCEDURE article_2012_increment(IN p_counter_name VARCHAR(50), IN p_amount BIGINT)
  MODIFIES SQL DATA
BEGIN
  DECLARE v_slots INT;
  DECLARE v_slot INT;
  SELECT COUNT(*)
    INTO v_slots
    FROM article_2012
   WHERE counter_name = p_counter_name;
  SET v_slot = 1 + FLOOR(RAND() * v_slots);
  UPDATE article_2012
     SET counter = counter + p_amount
   WHERE counter_name = p_counter_name
     AND counter_id = v_slot;
END;;
DELIMITER ;

-- name: fill
-- Parameters: name, slot
INSERT INTO article_2012 (counter_name, counter_id, counter)
VALUES (?, ?, 0);

-- name: increment
-- Parameters: name, amount
CALL article_2012_increment(?, ?);

-- name: read
-- Parameters: name
SELECT SUM(counter)
  FROM article_2012
 WHERE counter_name = ?;

-- name: total
-- Parameters: none
SELECT SUM(counter)
  FROM article_2012;
