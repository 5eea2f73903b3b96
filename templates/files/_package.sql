{%- import "macros.sql" as m -%}
{{ m::create_view(sql, o, package.description) }}
SELECT CAST({{ VERSION|sql_string }} AS CHAR CHARSET utf8mb4) AS version,
       CAST({{ o.description()|sql_string }} AS CHAR CHARSET utf8mb4) AS options
