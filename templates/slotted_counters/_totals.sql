{%- if let Some(rollup) = table.rollup() -%}
SELECT {% for column in table.key.columns() %}parent.{{ column.name.typed() }} AS {{ column.name.typed() }},
       {% endfor %}(
         SELECT COUNT(*)
           FROM {{ table.name }} AS slots
          WHERE {{ rollup.all("slots.{} = parent.{}")|indent(9) }}
       ) AS slots,
       -- A total beyond the range of BIGINT is shown as the end of the range, with a warning. The function fails with error 30008.
       COALESCE(CAST(COALESCE(parent.{{ rollup.column.typed() }}, 0) + COALESCE((
         SELECT SUM(slots.`count`)
           FROM {{ table.name }} AS slots
          WHERE {{ rollup.all("slots.{} = parent.{}")|indent(9) }}
       ), 0) AS SIGNED), 0) AS total
  FROM {{ rollup.parent }} AS parent
{%- else -%}
SELECT {{ table.key.lines()|indent(7) }},
       COUNT(*) AS slots,
       -- A total beyond the range of BIGINT is shown as the end of the range, with a warning. The function fails with error 30008.
       COALESCE(CAST(SUM(`count`) AS SIGNED), 0) AS total
  FROM {{ table.name }}
 GROUP BY {{ table.key.list() }}
{%- endif -%}
;
