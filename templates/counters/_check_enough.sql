{% if locked %}{{ table.over_snapshot()|before(0) }}{% endif -%}
SELECT SUM({% if locked %}amount{% else %}counter{% endif %})
  INTO v_total
{%- if locked %}
  FROM {{ table.all_slots()|indent(2) }};
{%- else %}
  FROM {{ table.name }}
 WHERE {{ table.key.equals("") }};
{%- endif %}
IF v_total IS NULL OR CHAR_LENGTH(p_counter_name) > {{ NAME_MAX }} THEN
  {{ r.check_name()|indent(2) }}
  {{ r.signal(E::UnknownCounter)|indent(2) }}
END IF;
IF v_total < p_amount THEN
  {{ r.signal(E::NotEnough)|indent(2) }}
END IF;
