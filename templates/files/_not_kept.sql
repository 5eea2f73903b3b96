EXISTS (
    SELECT * FROM information_schema.COLUMNS
     WHERE (TABLE_SCHEMA, TABLE_NAME) = (DATABASE(), {{ column.table.name()|sql_string -}}
       ) AND LOCATE('on update', LOWER(EXTRA))
{%- if !o.keep().is_empty() %}
       AND COLUMN_NAME NOT IN (
{%- for name in o.keep() %}{{ name.name()|sql_string }}{% if !loop.last %}, {% endif %}{% endfor %})
{%- endif %})
