-- The package of this name: CALL counter_increment for one counter
-- package: {name}

-- setup
CALL counter_setup('downloads', NULL, {slots}, 0);

-- increment
CALL counter_increment('downloads');

-- read
SELECT SUM(counter) FROM counters WHERE counter_name = 'downloads';

-- total
SELECT SUM(counter) FROM counters;
