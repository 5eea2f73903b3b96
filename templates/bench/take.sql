-- The package bounded_counters: bounded_counter_take takes a piece of stock
-- package: bounded_counters

-- setup
CALL bounded_counter_setup('seats', NULL, {slots}, 1000000000000);

-- increment
CALL bounded_counter_take('seats', 1);

-- read
SELECT SUM(counter) FROM bounded_counters WHERE counter_name = 'seats';

-- total
SELECT -SUM(counter) FROM bounded_counters;
