-- The package counters: each counter has its own number of slots
-- package: counters

-- setup
CALL counter_setup('downloads', NULL, {slots}, 0);

-- increment
CALL counter_increment('downloads');

-- read
SELECT SUM(counter)
  FROM counters
 WHERE counter_name = 'downloads';

-- total
SELECT SUM(counter)
  FROM counters;
