{#- The first statement of a transaction. FOR UPDATE, because the next statement changes the rows: two sessions that do so would
    deadlock otherwise. -#}
{{ table.over_snapshot()|before(0) }}INSERT INTO {{ table.name }} ({{ table.key.list() }}, slot, `count`)
SELECT {% for value in adopt.values() %}{{ value }}, {% endfor %}0, {{ source.column }}
  FROM {{ source.place() }} AS source
{%- if let Some(index) = source.index.as_ref() %} FORCE INDEX ({{ index }}){% endif %}
 WHERE {{ range }}
   AND {{ source.column }} <> 0
   FOR UPDATE
{%- if !inserts %}
ON DUPLICATE KEY UPDATE `count` = {{ table.name }}.`count` + source.{{ source.column }}
{%- endif %}
