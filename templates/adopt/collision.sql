{#- Two keys of the source that are one key of the package. The inner query compares by the collations of the source. -#}
SELECT MIN(example),
       MAX(example)
  FROM (
    SELECT {% for target in targets %}{{ target }} AS key_{{ loop.index }},
           {% endfor %}{% if groups.is_empty() %}{{ example }}{% else %}MIN({{ example }}){% endif %} AS example
      FROM {{ source.place() }}
{%- if !groups.is_empty() %}
     GROUP BY {% for column in groups %}{{ column }}{% if !loop.last %}, {% endif %}{% endfor %}
{%- endif %}
  ) AS keys_of_source
 GROUP BY {% for _ in targets %}key_{{ loop.index }}{% if !loop.last %}, {% endif %}{% endfor %}
HAVING COUNT(*) > 1
 LIMIT 1
