-- From templates/counters/counter_totals.sql
CREATE OR REPLACE
{%- if let Some(definer) = package.options.definer.as_ref() %}
  DEFINER = {{ definer }}
{%- endif %}
  SQL SECURITY {{ package.options.security.sql() }}
  VIEW {{ package.totals }} AS
SELECT counter_name,
       MAX(description) AS description,
       MAX(start_date) AS start_date,
       COUNT(*) AS slots,
       SUM(counter) AS total
  FROM {{ table.name }}
 GROUP BY counter_name;
