-- Schema and statement of "The Slotted Counter Pattern" (PlanetScale, 2022), as published: a surrogate id and a UNIQUE
-- key. RAND() * 100 is rounded to a slot from 0 to 100. The number of slots and the amounts are parameters.

-- name: setup
-- Parameters: none
CREATE TABLE `published_upsert` (
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `record_type` int(11) NOT NULL,
  `record_id` int(11) NOT NULL,
  `slot` int(11) NOT NULL DEFAULT '0',
  `count` int(11) DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `records_and_slots` (`record_type`,`record_id`,`slot`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8;

-- name: increment
-- Parameters: counter, slots, amount, amount
INSERT INTO published_upsert(record_type, record_id, slot, count)
VALUES (123, ?, RAND() * ?, ?)
ON DUPLICATE KEY UPDATE count = count + ?;

-- name: read
-- Parameters: counter
SELECT SUM(count)
  FROM published_upsert
 WHERE record_type = 123
   AND record_id = ?;

-- name: total
-- Parameters: none
SELECT COALESCE(SUM(count), 0)
  FROM published_upsert;
