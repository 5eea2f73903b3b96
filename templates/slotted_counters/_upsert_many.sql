-- ORDER BY, so that two calls with the same records lock them in the same order.
{{ table.over_snapshot()|before(0) }}INSERT INTO {{ table.name }} ({{ table.key.list() }}, slot, `count`)
SELECT {{ table.key.list() }}, {{ slot|indent(7) }}, amount
  FROM (
    SELECT {{ table.key.json_list()|indent(11) }},
           SUM(p_amount) AS amount
      FROM {{ table.entries(source, "")|indent(6) }}
     GROUP BY {{ table.key.list() }}
  ) AS sums
 WHERE amount <> 0
 ORDER BY {{ table.key.list() }}
ON DUPLICATE KEY UPDATE `count` = {{ table.name }}.`count` + amount;
