SELECT COUNT(*),
       CAST(COALESCE(SUM({{ source.column }} <> 0), 0) AS SIGNED),
       CAST(COALESCE(SUM({{ source.column }}), 0) AS CHAR),
       (
         SELECT CAST(COALESCE(SUM({{ table.count() }}), 0) AS CHAR)
           FROM {{ table.name }}
       )
  FROM {{ source.place() }}
