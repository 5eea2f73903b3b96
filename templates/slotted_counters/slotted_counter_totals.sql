-- From templates/slotted_counters/slotted_counter_totals.sql
CREATE OR REPLACE
{%- if let Some(definer) = package.options.definer.as_ref() %}
  DEFINER = {{ definer }}
{%- endif %}
  SQL SECURITY {{ package.options.security.sql() }}
  VIEW {{ package.totals }} AS
SELECT {{ table.key.lines()|indent(7) }},
       COUNT(*) AS slots,
       SUM(`count`) AS total
  FROM {{ table.name }}
 GROUP BY {{ table.key.list() }};
