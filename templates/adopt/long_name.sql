SELECT {{ adopt.name() }}
  FROM {{ source.place() }}
 WHERE CHAR_LENGTH({{ adopt.name() }}) > {{ NAME_MAX }}
 LIMIT 1
