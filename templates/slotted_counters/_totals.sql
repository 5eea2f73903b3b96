SELECT {{ table.key.lines()|indent(7) }},
       COUNT(*) AS slots,
{%- if table.bounded() %}
       -- At most 9223372036854775807. Of a greater total, the function returns error 30008.
       COALESCE(CAST(SUM(`count`) AS SIGNED), 0) AS total
{%- else %}
       SUM(`count`) AS total
{%- endif %}
  FROM {{ table.name }}
 GROUP BY {{ table.key.list() }};
