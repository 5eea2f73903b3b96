{%- let rollups = table.rollups() -%}
{%- for rollup in rollups.iter() -%}
SELECT {% for (column, value) in rollup.key_of_parent() %}{{ value }} AS {{ column.typed() }},
       {% endfor %}(
         SELECT COUNT(*)
           FROM {{ table.name }} AS slots
          WHERE {{ rollup.slots_of_parent()|indent(9) }}
       ) AS slots,
       -- A total beyond the range of BIGINT is shown as the end of the range, with a warning. The function fails with error 30008.
       COALESCE(CAST(COALESCE(parent.{{ rollup.model.target.typed() }}, 0) + COALESCE((
         SELECT SUM(slots.`count`)
           FROM {{ table.name }} AS slots
          WHERE {{ rollup.slots_of_parent()|indent(9) }}
       ), 0) AS SIGNED), 0) AS total
  FROM {{ rollup.model.table }} AS parent
{%- if !loop.last || !rollup.model.same.is_empty() %}
UNION ALL
{% endif %}
{%- endfor -%}
{%- if rollups.is_empty() || !rollups[0].model.same.is_empty() -%}
SELECT {{ table.key.lines()|indent(7) }},
       COUNT(*) AS slots,
       -- A total beyond the range of BIGINT is shown as the end of the range, with a warning. The function fails with error 30008.
       COALESCE(CAST(SUM(`count`) AS SIGNED), 0) AS total
  FROM {{ table.name }}
{%- for rollup in rollups.iter() %}
 {% if loop.first %}WHERE{% else %}  AND{% endif %} NOT ({{ rollup.same_where("")|indent(3) }})
{%- endfor %}
 GROUP BY {{ table.key.list() }}
{%- endif -%}
;
