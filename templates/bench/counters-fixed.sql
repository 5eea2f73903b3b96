-- The package counters-fixed: the number of slots is in its routines
-- package: counters-fixed

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
