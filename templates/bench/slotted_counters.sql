-- The package slotted_counters: a record is found by its key columns
-- package: slotted_counters

-- setup

-- increment
CALL slotted_counter_increment(123, 456);

-- read
SELECT SUM(`count`) FROM slotted_counters WHERE record_type = 123 AND record_id = 456;

-- total
SELECT COALESCE(SUM(`count`), 0) FROM slotted_counters;
