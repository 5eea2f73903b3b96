{%- if package.options.per_counter() %}
  DECLARE v_slots BIGINT;
{%- endif %}
{%- if package.options.random() %}
  DECLARE v_slot BIGINT;
{%- endif %}
{%- if package.options.per_counter() || package.options.random() %}
{% endif %}
