(
{%- for range in ranges %}
  {% if !loop.first %}UNION ALL
  {% endif %}(SELECT {{ table.slot() }} AS slot, {{ table.count() }} AS amount
     FROM {{ table.name }}
    WHERE {{ table.key.equals("")|indent(2) }}
      AND {{ table.slot() }} {{ range.comparison() }}
{%- if !range.condition.is_empty() %}
      AND {{ range.condition }}
{%- endif %}
{%- if let Some(limit) = range.limit() %}
    ORDER BY {{ table.slot() }}{% if range.descending() %} DESC{% endif %}
    LIMIT {{ limit }}
{%- endif %}
{% if lock.changes() %}      FOR UPDATE{% else %}     LOCK IN SHARE MODE{% endif %}{% if range.skip %} SKIP LOCKED{% endif %})
{%- endfor %}
) AS locked
