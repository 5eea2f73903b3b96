(
{%- for (slots, limit) in ranges %}
  {% if !loop.first %}UNION ALL
  {% endif %}(
    SELECT {{ table.slot() }} AS slot,
           {{ table.count() }} AS amount
      FROM {{ table.name }}
     WHERE {{ table.key.equals("")|indent(4) }}
       AND {{ table.slot() }} {{ slots }}
{%- if !limit.is_empty() %}
     ORDER BY {{ table.slot() }}{% if slots.starts_with('>') %} DESC{% endif %}
     LIMIT {{ limit }}
{%- endif %}
       FOR UPDATE{% if slots.as_bytes() != b"= 1" && slots.as_bytes() != b"= 0" %}{{ skip }}{% endif %}
  )
{%- endfor %}
{%- if !row.is_empty() %}
  UNION ALL
  SELECT {{ row }}, 0
{%- endif %}
) AS locked
