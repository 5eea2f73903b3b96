(
  -- The slots share what is left evenly. The last ones of a {{ table.subject() }} are put into slot {{ table.first_slot() }}, so that calls wait for one row
  -- instead of searching.
{%- if !table.keyed() %} Retired slots get 0.{% endif %}
  SELECT slot,
         CASE
{%- if !table.keyed() %}
           WHEN slot < 1 THEN 0
{%- endif %}
           WHEN first_slots = 0 OR total - p_amount >= {{ FEW }} * slots
             THEN (total - p_amount) DIV slots + IF(number <= MOD(total - p_amount, slots), 1, 0)
           WHEN slot = {{ table.first_slot() }} THEN total - p_amount
           ELSE 0
         END AS amount
    FROM (
      SELECT slot,
             SUM(SUM(amount)) OVER () AS total,
             SUM(IF(slot >= {{ table.first_slot() }}, 1, 0)) OVER () AS slots,
             SUM(IF(slot = {{ table.first_slot() }}, 1, 0)) OVER () AS first_slots,
             ROW_NUMBER() OVER (ORDER BY IF(slot >= {{ table.first_slot() }}, 0, 1), slot) AS number
        FROM {{ slots|indent(8) }}
       GROUP BY slot
    ) AS summed
   WHERE total >= p_amount
) AS spread
