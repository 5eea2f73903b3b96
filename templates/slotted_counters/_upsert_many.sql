-- ORDER BY, so that two calls with the same records lock them in the same order.
{{ table.over_snapshot()|before(0) }}INSERT INTO {{ table.name }} ({{ table.key.list() }}, slot, `count`)
SELECT {{ table.key.list() }}, {% if check.is_empty() %}{{ slot|indent(7) }}{% else %}IF(valid, {{ slot }}, NULL){% endif %}, amount
  FROM {{ table.sums(source, check)|indent(2) }}
 WHERE amount <> 0
{%- if !check.is_empty() %}
    OR NOT valid
{%- endif %}
 ORDER BY {{ table.key.list() }}
ON DUPLICATE KEY UPDATE `count` = {{ table.name }}.`count` + amount;
