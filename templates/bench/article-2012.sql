-- The design of the article "Avoid locks when storing counters in MySQL" (2012): COUNT(*) and a random slot
-- The checks of the article's procedure are left out.

-- setup
CREATE TABLE counters (
  counter_name VARCHAR(50) NOT NULL,
  counter_id INT NOT NULL,
  counter BIGINT NOT NULL,
  PRIMARY KEY (counter_name, counter_id)
) ENGINE = InnoDB;

DELIMITER ;;
CREATE PROCEDURE counter_setup(IN p_counter_name VARCHAR(50), IN p_slots INT)
  MODIFIES SQL DATA
BEGIN
  DECLARE v_slot INT DEFAULT 1;
  START TRANSACTION;
  WHILE v_slot <= p_slots DO
    INSERT INTO counters (counter_name, counter_id, counter)
    VALUES (p_counter_name, v_slot, 0);
    SET v_slot = v_slot + 1;
  END WHILE;
  COMMIT;
END;;

CREATE PROCEDURE counter_increment(IN p_counter_name VARCHAR(50))
  MODIFIES SQL DATA
BEGIN
  DECLARE v_slots INT;
  DECLARE v_slot INT;
  SELECT COUNT(*)
    INTO v_slots
    FROM counters
   WHERE counter_name = p_counter_name;
  SET v_slot = 1 + FLOOR(RAND() * v_slots);
  UPDATE counters
     SET counter = counter + 1
   WHERE counter_name = p_counter_name
     AND counter_id = v_slot;
END;;
DELIMITER ;

CALL counter_setup('downloads', {slots});

-- increment
CALL counter_increment('downloads');

-- read
SELECT SUM(counter) FROM counters WHERE counter_name = 'downloads';

-- total
SELECT SUM(counter) FROM counters;
