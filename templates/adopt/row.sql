{#- Two rows are enough to reject the condition. -#}
SELECT {{ source.column }},
       {{ source.limit() }},
       {{ adopt.identity_of(condition) }}
{%- for column in source.key %},
       {{ column.comparable() }}
{%- endfor %}
  FROM {{ source.place() }}
 WHERE {{ condition }}
 LIMIT 2
   FOR UPDATE
