-- Deletes only slots whose count is 0: another resize can have retired a slot since. LIMIT ends the range before slot 1,
-- which increments lock.
{{ table.over_checks()|before(0) }}DELETE FROM {{ table.name }}
 WHERE {{ table.key.equals("") }}
   AND counter_id < 1
   AND counter = 0
 ORDER BY counter_id
 LIMIT {{ retired }};
