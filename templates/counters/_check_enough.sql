{% if !slots.is_empty() %}{{ table.over_snapshot()|before(0) }}{% endif -%}
SELECT SUM({% if slots.is_empty() %}counter{% else %}amount{% endif %})
{%- if slots.is_empty() %}, SUM(IF(counter_id = 1, counter, 0))
  INTO v_total, v_pool
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }};
{%- else %}
  INTO v_total
  FROM {{ slots|indent(2) }};
{%- endif %}
IF v_total IS NULL OR CHAR_LENGTH(p_counter_name) > {{ NAME_MAX }} THEN
  {{ r.check_name()|indent(2) }}
  {{ r.signal(E::UnknownCounter)|indent(2) }}
END IF;
IF v_total < p_amount THEN
  {{ r.signal(E::NotEnough)|indent(2) }}
END IF;
