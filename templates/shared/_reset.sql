{{ table.over_snapshot()|before(0) }}INSERT INTO {{ table.name }} ({{ table.key.list() }}, {{ table.slot() }}, {% if !table.keyed() %}start_date, {% endif %}{{ table.count() }})
SELECT {{ table.key.arguments() }}, slot, {% if !table.keyed() %}NOW(), {% endif %}share
  FROM (
    SELECT slot,
           IF(slot = {{ table.first_slot() }}, COALESCE({{ value }}, 0){{ table.less_column()|indent(11) }}, 0) AS share
{%- if table.rollup().is_none() %},
           SUM(slot = {{ table.first_slot() }}) OVER () AS firsts
      FROM {{ table.all_slots()|indent(6) }}
  ) AS found
 WHERE firsts = 1
{%- else %}
      FROM (
        -- A roll-up can have deleted slot 0.
        SELECT 0 AS slot
        UNION
        SELECT slot
          FROM {{ table.all_slots()|indent(10) }}
      ) AS slots
  ) AS found
{%- endif %}
ON DUPLICATE KEY UPDATE
  {{ table.count() }} = found.share
{%- if !table.keyed() %},
  start_date = IF({{ restart }}, NOW(), {{ table.name }}.start_date)
{%- endif -%}
;
