-- From templates/slotted_counters/slotted_counter_totals.sql
CREATE OR REPLACE
  SQL SECURITY {{ package.options.security.sql() }}
  VIEW {{ package.totals }} AS
SELECT {{ table.key.lines()|indent(7) }},
       COUNT(*) AS slots,
       SUM(`count`) AS total
  FROM {{ table.name }}
 GROUP BY {{ table.key.list() }};
