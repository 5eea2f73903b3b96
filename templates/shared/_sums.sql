(
  SELECT {{ table.key.json_list()|indent(9) }},
         MIN(entry) AS entry,
         SUM(p_amount) AS amount
{%- if !check.is_empty() %},
         MIN({{ table.entry_fits()|indent(9) }}) AS valid
{%- endif %}
    FROM {{ table.entries(source, check)|indent(4) }}
   GROUP BY {{ table.key.list() }}
) AS sums
