(
{%- for slots in ranges %}
  {% if !loop.first %}UNION ALL
  {% endif %}(
    SELECT {{ table.slot() }} AS slot,
           {{ table.count() }} AS amount
      FROM {{ table.name }}
     WHERE {{ table.key.equals("")|indent(4) }}
       AND {{ table.slot() }} {{ slots }}
{%- if slots.starts_with('>') %}
     ORDER BY {{ table.slot() }} DESC
     LIMIT {{ MAX_SLOTS }}
{%- endif %}
       FOR UPDATE
  )
{%- endfor %}
) AS locked
