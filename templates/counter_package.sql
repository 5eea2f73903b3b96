CREATE OR REPLACE
  SQL SECURITY {{ c.options().security.sql() }}
  VIEW {{ c.package.package }} AS
SELECT {{ VERSION|sql_string }} AS version,
       {{ c.package_name()|sql_string }} AS package,
       {{ c.options().key|sql_string }} AS key_columns,
       {{ c.options().slots|sql_string }} AS slots,
       {{ c.options().setup_slots() }} AS default_slots,
       {{ c.options().pick|sql_string }} AS pick,
       {{ c.options().table.name()|sql_string }} AS table_name,
       {{ c.options().prefix.name()|sql_string }} AS prefix,
       {{ c.options().collation|sql_string }} AS collation_name,
       {{ c.options().security|sql_string }} AS security;
