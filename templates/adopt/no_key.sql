SELECT COUNT(*)
  FROM {{ source.place() }}
 WHERE ({% for column in columns %}{{ column }} IS NULL{% if !loop.last %} OR {% endif %}{% endfor %})
   AND {{ source.column }} <> 0
