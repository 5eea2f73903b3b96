SELECT {{ adopt.name() }},
       {{ adopt.identity() }},
       CAST(COALESCE({{ source.column }}, 0) AS CHAR)
  FROM {{ adopt.from() }}
 WHERE {{ range }}
   FOR UPDATE
