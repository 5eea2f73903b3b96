CREATE OR REPLACE
  SQL SECURITY {{ c.options().security.sql() }}
  VIEW {{ c.package.totals }} AS
SELECT counter_name,
       MAX(description) AS description,
       MAX(start_date) AS start_date,
       COUNT(*) AS slots,
       SUM(counter) AS total
  FROM {{ c.table() }}
 GROUP BY counter_name;
