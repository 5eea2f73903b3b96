SELECT {{ table.key.lines()|indent(7) }},
       COUNT(*) AS slots,
       -- A total beyond the range of BIGINT is shown as the end of the range, with a warning. The function returns 30008 for it.
       COALESCE(CAST(SUM(`count`) AS SIGNED), 0) AS total
  FROM {{ table.name }}
 GROUP BY {{ table.key.list() }};
