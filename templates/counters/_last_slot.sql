{{ table.over_snapshot()|before(0) }}SELECT MAX(counter_id)
  INTO {{ variable }}
  FROM {{ table.name }}
 WHERE counter_name = LEFT(p_counter_name, {{ NAME_MAX }})
{%- if !lock.is_empty() %}
   {{ lock }}
{%- endif -%}
;
