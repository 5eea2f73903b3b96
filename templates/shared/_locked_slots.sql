(
{%- for (slots, limit, skip) in ranges %}
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
{% if lock.starts_with('F') %}       {% else %}      {% endif %}{{ lock }}{{ skip }}
  )
{%- endfor %}
{%- if mark %}
  UNION ALL
  SELECT 0, 0
{%- endif %}
) AS locked
