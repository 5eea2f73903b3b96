-- Moves the count to slot 1 and gives the slot a negative number, which no take looks for, in one statement: a take
-- finds all that is left.
{{ table.over_snapshot()|before(0) }}INSERT INTO {{ table.name }} (counter_name, counter_id, start_date, counter)
SELECT {{ table.key.arguments() }}, slot, NOW(), moved
  FROM (
    SELECT slot,
           IF(slot = 1, SUM(amount) OVER (), 0) AS moved,
           COUNT(*) OVER () AS found
      FROM {{ table.first_and(slot)|indent(6) }}
  ) AS folded
 WHERE found = 2
ON DUPLICATE KEY UPDATE
  counter = folded.moved,
  counter_id = IF(folded.slot = 1, 1, -folded.slot);
