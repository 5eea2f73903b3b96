{#- The key of a row: the first one that meets the condition, the last one, or the one at an offset. -#}
SELECT {% for column in source.key %}{{ column.comparable() }}{% if !loop.last %}, {% endif %}{% endfor %}
  FROM {{ adopt.from() }}
 WHERE {{ condition }}
 ORDER BY {% for column in source.key %}{{ column.name }}{{ direction }}{% if !loop.last %}, {% endif %}{% endfor %}
 LIMIT 1 OFFSET {{ offset }}
