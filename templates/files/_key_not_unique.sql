NOT EXISTS (
    SELECT INDEX_NAME FROM information_schema.STATISTICS
     WHERE (TABLE_SCHEMA, TABLE_NAME, NON_UNIQUE) = (DATABASE(), {{ column.table.name()|sql_string }}, 0)
     GROUP BY INDEX_NAME -- a unique index that has only columns of the key
    HAVING SUM(COLUMN_NAME IN (
{%- for column in o.key() %}{{ column.name.name()|sql_string }}{% if !loop.last %}, {% endif %}{% endfor -%}
    )) = COUNT(*))
