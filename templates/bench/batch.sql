-- The package slotted_counters: slotted_counter_add_many adds to 100 of 1,000 records in a call
-- package: slotted_counters
-- counts: 100

-- setup

-- increment
CALL slotted_counter_add_many('[{entries}]');

-- read
SELECT SUM(`count`) FROM slotted_counters WHERE record_type = 123 AND record_id = {random};

-- total
SELECT COALESCE(SUM(`count`), 0) FROM slotted_counters;
