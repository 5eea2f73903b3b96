CREATE OR REPLACE
  SQL SECURITY {{ c.options().security.sql() }}
  VIEW {{ c.package.totals }} AS
SELECT {{ c.key_columns("\n       ") }},
{%- if !c.keyed() %}
       MAX(description) AS description,
       MAX(start_date) AS start_date,
{%- endif %}
       COUNT(*) AS slots,
       SUM({{ c.count_column() }}) AS total
  FROM {{ c.table() }}
 GROUP BY {{ c.key_columns("") }};
