SELECT {{ table.key.lines()|indent(7) }},
       COUNT(*) AS slots,
       SUM(`count`) AS total
  FROM {{ table.name }}
 GROUP BY {{ table.key.list() }};
