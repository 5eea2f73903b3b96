SELECT CASE{% if let Some(column) = o.column() %}
  WHEN {% include "files/_column_differs.sql" %} THEN {{ COLUMN_DIFFERS|sql_string }}
  WHEN {% include "files/_key_not_unique.sql" %} THEN {{ KEY_NOT_UNIQUE|sql_string }}
  WHEN {% include "files/_not_kept.sql" %} THEN {{ NOT_KEPT|sql_string }}{% endif %}
  WHEN {% include "files/_table_differs.sql" %} THEN {{ TABLE_DIFFERS|sql_string }}
END
