{%- let table = o.table.name() -%}
NOT EXISTS (SELECT * FROM information_schema.TABLES
     WHERE (TABLE_SCHEMA, TABLE_NAME, ENGINE) = (DATABASE(), {{ table|sql_string }}, 'InnoDB'))
  OR {{ sql.columns().len() }} <> (SELECT COUNT(*) FROM information_schema.COLUMNS
     WHERE (TABLE_SCHEMA, TABLE_NAME) = (DATABASE(), {{ table|sql_string }})
       AND {% include "files/_column.sql" %} IN (
{%- for column in sql.columns() %}
         {{ column|sql_string }}{% if !loop.last %},{% endif %}
{%- endfor %}))
  OR NOT {{ sql.primary_key()|sql_string }} <=> (
    SELECT GROUP_CONCAT(COLUMN_NAME, COALESCE(SUB_PART, '') ORDER BY SEQ_IN_INDEX) FROM information_schema.STATISTICS
     WHERE (TABLE_SCHEMA, TABLE_NAME, NON_UNIQUE) = (DATABASE(), {{ table|sql_string }}, 0))
{%- if o.is_bounded() %}
  OR NOT EXISTS (
    SELECT * FROM information_schema.CHECK_CONSTRAINTS
{%- if o.mariadb() %}
     WHERE (CONSTRAINT_SCHEMA, TABLE_NAME, CHECK_CLAUSE) = (DATABASE(), {{ table|sql_string }}, '`counter` >= 0'))
{%- else %}
      JOIN information_schema.TABLE_CONSTRAINTS USING (CONSTRAINT_SCHEMA, CONSTRAINT_NAME)
     WHERE (CONSTRAINT_SCHEMA, TABLE_NAME, CHECK_CLAUSE, ENFORCED) = (DATABASE(), {{ table|sql_string -}}
       , '(`counter` >= 0)', 'YES')){% endif %}
{%- endif -%}
