-- From templates/counters/counter_totals.sql
CREATE OR REPLACE
  SQL SECURITY {{ package.options.security.sql() }}
  VIEW {{ package.totals }} AS
SELECT counter_name,
       MAX(description) AS description,
       MAX(start_date) AS start_date,
       COUNT(*) AS slots,
       SUM(counter) AS total
  FROM {{ table.name }}
 GROUP BY counter_name;
