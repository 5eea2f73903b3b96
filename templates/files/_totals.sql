{%- import "macros.sql" as m -%}
{{ m::create_view(sql, o, package.totals) }}
{%- if let Some(column) = o.column() %}
SELECT {{ sql.key("parent.{}", ", ") }},
       CAST(COALESCE(parent.{{ column.column }}, 0) + COALESCE((
         SELECT SUM(slots.`count`) FROM {{ o.table }} AS slots FORCE INDEX (PRIMARY)
          WHERE {{ sql.key("slots.{} = parent.{}", " AND ") -}}
       ), 0) AS SIGNED) AS total
  FROM {{ column.table }} AS parent
{%- else if o.is_named() %}
SELECT counter_name,
       MAX(description) AS description,
       MAX(start_date) AS start_date,
       MAX(counter_id) AS slots,
       CAST(SUM(counter) AS SIGNED) AS total
  FROM {{ o.table }} FORCE INDEX (PRIMARY)
 WHERE counter_id > 0
 GROUP BY counter_name
{%- else %}
SELECT {{ sql.key("{}", ", ") }},
       COUNT(*) AS slots,
       CAST(SUM(`count`) AS SIGNED) AS total
  FROM {{ o.table }} FORCE INDEX (PRIMARY)
 GROUP BY {{ sql.key("{}", ", ") }}{% endif %}
