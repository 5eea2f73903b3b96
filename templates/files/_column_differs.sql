NOT EXISTS (SELECT * FROM information_schema.TABLES
     WHERE (TABLE_SCHEMA, TABLE_NAME, ENGINE) = (DATABASE(), {{ column.table.name()|sql_string }}, 'InnoDB'))
  OR {{ o.key().len() }} <> (SELECT COUNT(*) FROM information_schema.COLUMNS
     WHERE (TABLE_SCHEMA, TABLE_NAME) = (DATABASE(), {{ column.table.name()|sql_string }})
       -- Each column of the key as a text such as 'id int NOT NULL'. An int(11) is an int.
       AND {% include "files/_column.sql" %} IN (
{%- for column in sql.key_columns() %}
         {{ column|sql_string }}{% if !loop.last %},{% endif %}
{%- endfor %}))
  OR NOT EXISTS (SELECT * FROM information_schema.COLUMNS
     WHERE (TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME) = (DATABASE(), {{ column.table.name()|sql_string -}}
       , {{ column.column.name()|sql_string }})
       AND NUMERIC_SCALE = 0 AND DATA_TYPE NOT IN ('float', 'double') AND COALESCE(GENERATION_EXPRESSION, '') = '')
