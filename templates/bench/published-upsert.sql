-- Schema and statement of "The Slotted Counter Pattern" (PlanetScale, 2022), with a surrogate id
-- RAND() * {slots} is rounded to a slot from 0 to {slots}.

-- setup
CREATE TABLE `slotted_counters` (
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `record_type` int(11) NOT NULL,
  `record_id` int(11) NOT NULL,
  `slot` int(11) NOT NULL DEFAULT '0',
  `count` int(11) DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `records_and_slots` (`record_type`,`record_id`,`slot`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8;

-- increment
INSERT INTO slotted_counters(record_type, record_id, slot, count)
VALUES (123, 456, RAND() * {slots}, 1)
ON DUPLICATE KEY UPDATE count = count + 1;

-- read
SELECT SUM(count) FROM slotted_counters WHERE record_type = 123 AND record_id = 456;

-- total
SELECT COALESCE(SUM(count), 0) FROM slotted_counters;
