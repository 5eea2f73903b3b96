{%- if c.per_counter() %}
  DECLARE v_slots BIGINT;
{%- endif %}
{%- if c.random() %}
  DECLARE v_slot BIGINT;
{%- endif %}
{%- if c.per_counter() || c.random() %}
{% endif %}
