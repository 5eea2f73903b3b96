-- Reads the end of the index. Without LEFT(), MariaDB reads every slot: the parameter is longer than the column.
{% if !lock.is_empty() || table.bounded() %}{{ table.over_snapshot()|before(0) }}{% endif -%}
SELECT MAX(counter_id)
  INTO {{ variable }}
  FROM {{ table.name }}
 WHERE counter_name = LEFT(p_counter_name, {{ NAME_MAX }})
{%- if !lock.is_empty() %}
   {{ lock }}
{%- endif -%}
;
