{%- if c.per_counter() %}
  DECLARE v_slots BIGINT;
{%- endif %}
  DECLARE v_slot BIGINT;
{%- if !c.keyed() %}
  DECLARE v_message VARCHAR({{ MESSAGE_MAX }}) CHARACTER SET utf8mb4;
{%- endif %}
