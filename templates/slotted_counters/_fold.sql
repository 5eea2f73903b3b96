{{ table.over_snapshot()|before(0) }}INSERT INTO {{ table.name }} ({{ table.key.list() }}, slot, `count`)
SELECT {{ table.key.arguments() }}, slot, moved
  FROM (
    SELECT slot,
           IF(slot = 0, SUM(amount) OVER (), 0) AS moved,
           SUM(slot = 0) OVER () AS firsts
      FROM {{ slots|indent(6) }}
  ) AS moving
 WHERE firsts = 1
ON DUPLICATE KEY UPDATE `count` = moving.moved;
