-- The table of the package counters-fixed, and a plain UPDATE of a slot without CALL
-- package: counters-fixed

-- setup
CALL counter_setup('downloads', NULL, {slots}, 0);

-- increment
UPDATE counters
   SET counter = counter + 1
 WHERE counter_name = 'downloads'
   AND counter_id = 1 + MOD(CONNECTION_ID(), {slots});

-- read
SELECT SUM(counter) FROM counters WHERE counter_name = 'downloads';

-- total
SELECT SUM(counter) FROM counters;
